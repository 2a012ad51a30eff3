//! What a link gives, as a share of its nominal rate. A file, so that people put their own experience there.

use serde::Deserialize;

/// The table that the program brings along.
pub const SHIPPED: &str = include_str!("efficiency.toml");

/// Shares of the nominal rate, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    pub nvlink: f64,
    pub xgmi: f64,
    pub c2c: f64,
    pub pcie: f64,
    pub infiniband: f64,
    pub ethernet: f64,
    /// of PCIe, for transfers between devices of different sockets
    pub gpudirect_cross_socket: f64,
}

impl Default for Efficiency {
    fn default() -> Self {
        // A test reads the shipped file and compares.
        Self { nvlink: 0.88, xgmi: 0.75, c2c: 0.85, pcie: 0.86, infiniband: 0.96, ethernet: 0.94, gpudirect_cross_socket: 0.5 }
    }
}

/// The lines of a user's file; what it leaves out stays as it was.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Lines {
    nvlink: Option<f64>,
    xgmi: Option<f64>,
    c2c: Option<f64>,
    pcie: Option<f64>,
    infiniband: Option<f64>,
    ethernet: Option<f64>,
    gpudirect_cross_socket: Option<f64>,
}

impl Efficiency {
    /// This table with the lines of a file's text; `file` is its name, for errors.
    pub fn with(mut self, text: &str, file: &str) -> Result<Self, String> {
        let lines: Lines = toml::from_str(text).map_err(|error| {
            let line = error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1);
            format!("{file}:{line}: {}; expected shares of the nominal rate, such as pcie = 0.86", error.message())
        })?;
        let fields = [
            ("nvlink", lines.nvlink, &mut self.nvlink),
            ("xgmi", lines.xgmi, &mut self.xgmi),
            ("c2c", lines.c2c, &mut self.c2c),
            ("pcie", lines.pcie, &mut self.pcie),
            ("infiniband", lines.infiniband, &mut self.infiniband),
            ("ethernet", lines.ethernet, &mut self.ethernet),
            ("gpudirect_cross_socket", lines.gpudirect_cross_socket, &mut self.gpudirect_cross_socket),
        ];
        for (name, told, field) in fields {
            let Some(share) = told else { continue };
            if !(share > 0.0 && share <= 1.0) {
                return Err(format!("{file}: {name} = {share}: expected a share above 0 and at most 1"));
            }
            *field = share;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_says_what_the_program_uses() {
        let none = Efficiency { nvlink: 1.0, xgmi: 1.0, c2c: 1.0, pcie: 1.0, infiniband: 1.0, ethernet: 1.0, gpudirect_cross_socket: 1.0 };
        assert_eq!(none.with(SHIPPED, "efficiency.toml"), Ok(Efficiency::default()));
    }

    #[test]
    fn single_lines_change_and_wrong_ones_are_told() {
        let own = Efficiency::default().with("pcie = 0.8 # ours\n", "mine.toml").unwrap();
        assert_eq!(own, Efficiency { pcie: 0.8, ..Efficiency::default() });
        for (text, expected) in [
            ("\npcie = 1.2", "pcie = 1.2"),
            ("nvlink = nan", "nvlink = NaN"),
            ("pcie = 0.9\npcei = 0.9", "mine.toml:2"),
            ("pcie = 0", "pcie = 0"),
        ] {
            let told = Efficiency::default().with(text, "mine.toml").unwrap_err();
            assert!(told.contains(expected) && told.contains("mine.toml"), "{told}");
        }
    }
}
