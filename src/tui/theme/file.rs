use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use toml::{Table, Value};

use super::{SCOPES, ThemeError, Themes};
use crate::units::plain;

const MODIFIERS: [(&str, Modifier); 6] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underlined", Modifier::UNDERLINED),
    ("reversed", Modifier::REVERSED),
    ("crossed_out", Modifier::CROSSED_OUT),
];

/// A theme's entries with those of its parents below them.
#[derive(Debug, Default)]
pub(super) struct File {
    scopes: BTreeMap<String, Value>,
    palette: BTreeMap<String, Color>,
}

/// Read a theme and its parents.
pub(super) fn read(themes: &Themes, name: &str, warnings: &mut Vec<String>) -> Result<File, ThemeError> {
    let mut line: Vec<(String, Table)> = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(name) = next.take() {
        if line.iter().any(|(seen, _)| *seen == name) {
            let circle: Vec<String> = line.iter().map(|(seen, _)| plain(seen)).chain([plain(&name)]).collect();
            return Err(ThemeError::Cycle(circle.join(", ")));
        }
        let Some(text) = themes.text(&name) else {
            let names = themes.names();
            let nearest = crate::tui::nearest(&name, names.iter().map(String::as_str)).unwrap_or("dark").to_owned();
            return Err(ThemeError::Unknown { name: plain(&name), nearest });
        };
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| ThemeError::Syntax {
            name: plain(&name),
            message: plain(&error.to_string().replace('\n', " ")),
        })?;
        next = match table.remove("inherits") {
            Some(Value::String(parent)) => Some(parent),
            Some(other) => {
                warnings.push(format!("inherits: expected the name of a theme, found {}", show(&other)));
                None
            }
            None => None,
        };
        line.push((name, table));
    }
    let mut file = File::default();
    for (_, mut table) in line.into_iter().rev() {
        match table.remove("palette") {
            Some(Value::Table(palette)) => {
                for (name, value) in palette {
                    match value.as_str().and_then(hex) {
                        Some(color) => {
                            file.palette.insert(name, color);
                        }
                        None => warnings.push(format!(
                            "palette.{}: expected a colour such as \"#5cc8e8\", found {}",
                            plain(&name),
                            show(&value)
                        )),
                    }
                }
            }
            Some(other) => warnings.push(format!("palette: expected a table of colours, found {}", show(&other))),
            None => {}
        }
        for (scope, value) in table {
            let used =
                SCOPES.iter().any(|known| *known == scope || known.strip_prefix(scope.as_str()).is_some_and(|rest| rest.starts_with('.')));
            if used {
                file.scopes.insert(scope, value);
            } else {
                let nearest = crate::tui::nearest(&scope, SCOPES.into_iter()).unwrap_or("ui");
                warnings.push(format!("{}: there is no such scope; did you mean {nearest}?", plain(&scope)));
            }
        }
    }
    Ok(file)
}

impl File {
    /// Styles in full colour.
    pub(super) fn styles(&self, warnings: &mut Vec<String>) -> BTreeMap<String, Style> {
        self.scopes.iter().map(|(scope, value)| (scope.clone(), self.style(scope, value, warnings))).collect()
    }

    fn style(&self, scope: &str, value: &Value, warnings: &mut Vec<String>) -> Style {
        let mut style = Style::default();
        match value {
            Value::String(_) => style.fg = self.color(scope, value, warnings),
            Value::Table(table) => {
                for (key, value) in table {
                    match key.as_str() {
                        "fg" => style.fg = self.color(scope, value, warnings),
                        "bg" => style.bg = self.color(scope, value, warnings),
                        "modifiers" => style = style.add_modifier(modifiers(scope, value, warnings)),
                        _ => warnings.push(format!("{scope}: {} is not one of fg, bg, modifiers", plain(key))),
                    }
                }
            }
            other => warnings.push(format!("{scope}: expected a colour or {{fg, bg, modifiers}}, found {}", show(other))),
        }
        style
    }

    fn color(&self, scope: &str, value: &Value, warnings: &mut Vec<String>) -> Option<Color> {
        let color = value.as_str().and_then(|text| self.palette.get(text).copied().or_else(|| hex(text)));
        if color.is_none() {
            warnings.push(format!("{scope}: expected a colour of the palette or one such as \"#5cc8e8\", found {}", show(value)));
        }
        color
    }
}

fn modifiers(scope: &str, value: &Value, warnings: &mut Vec<String>) -> Modifier {
    let mut all = Modifier::empty();
    let Some(list) = value.as_array() else {
        warnings.push(format!("{scope}: modifiers: expected a list such as [\"bold\"], found {}", show(value)));
        return all;
    };
    for item in list {
        if let Some((_, modifier)) = MODIFIERS.iter().find(|(name, _)| item.as_str() == Some(name)) {
            all |= *modifier;
        } else {
            let known: Vec<&str> = MODIFIERS.iter().map(|(name, _)| *name).collect();
            warnings.push(format!("{scope}: {} is not one of {}", show(item), known.join(", ")));
        }
    }
    all
}

/// `#rrggbb`
fn hex(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    Some(Color::Rgb((number >> 16) as u8, (number >> 8) as u8, number as u8))
}

fn show(value: &Value) -> String {
    plain(&value.to_string().replace('\n', " "))
}
