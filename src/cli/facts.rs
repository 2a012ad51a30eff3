//! Commands that only tell something.

use std::fmt::Write;

use anyhow::Result;

use super::args::{Global, SchemaOf};
use super::{FINE, print};

/// The fabrics that come with the program, or one of them as its file.
pub(super) fn fabrics(name: Option<&str>) -> Result<u8> {
    use crate::fabric::Fabric;
    if let Some(name) = name {
        let Some(text) = Fabric::shipped_text(name) else {
            anyhow::bail!("{name:?} is not one of {}", Fabric::names().collect::<Vec<_>>().join(", "));
        };
        print(text);
        return Ok(FINE);
    }
    let mut text = String::new();
    for name in Fabric::names() {
        if let Some(fabric) = Fabric::shipped(name).transpose()? {
            let _ = writeln!(text, "{name:16} {:>5} ranks  {}", fabric.world(), fabric.about());
        }
    }
    text.push_str("\ntoposcope sweep --engine sim --fabric NAME simulates one; toposcope fabrics NAME prints its file to start from\n");
    print(&text);
    Ok(FINE)
}

/// What this build and this machine can do.
pub(super) fn doctor(global: &Global, json: bool) -> Result<u8> {
    let mut text = Vec::new();
    let code = super::doctor::run(global.efficiency.as_deref(), json, &mut text)?;
    print(&String::from_utf8_lossy(&text));
    Ok(code)
}

/// The key table.
#[cfg(feature = "tui")]
pub(super) fn keys() -> Result<u8> {
    print(&crate::tui::keys::table(&crate::tui::keys::Keymap::load(super::look::keys()?.as_deref())?));
    Ok(FINE)
}

#[cfg(not(feature = "tui"))]
pub(super) fn keys() -> Result<u8> {
    anyhow::bail!("this program was built without the screen (feature tui)")
}

/// The themes there are.
#[cfg(feature = "tui")]
#[allow(clippy::unnecessary_wraps, reason = "its twin for a program without the screen fails")]
pub(super) fn themes() -> Result<u8> {
    let themes = crate::tui::theme::Themes::new(super::look::themes());
    let text: Vec<String> = themes.names().into_iter().map(|name| name + "\n").collect();
    print(&text.concat());
    Ok(FINE)
}

#[cfg(not(feature = "tui"))]
pub(super) fn themes() -> Result<u8> {
    anyhow::bail!("this program was built without the screen (feature tui)")
}

/// A schema of what this program writes.
pub(super) fn schema(of: SchemaOf) -> u8 {
    print(match of {
        SchemaOf::Calibration => crate::export::CALIBRATION_SCHEMA,
        SchemaOf::Fits => crate::export::FITS_SCHEMA,
        SchemaOf::Diagnosis => crate::export::DIAGNOSIS_SCHEMA,
        SchemaOf::Header => crate::session::HEADER_SCHEMA,
        SchemaOf::Event => crate::session::EVENT_SCHEMA,
        SchemaOf::Plan => crate::plan::files::PLAN_SCHEMA,
        SchemaOf::Traffic => crate::plan::files::TRAFFIC_SCHEMA,
        SchemaOf::Scenarios => crate::export::SCENARIOS_SCHEMA,
    });
    FINE
}
