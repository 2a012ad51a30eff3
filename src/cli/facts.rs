//! Commands that only tell something.

use std::fmt::Write;

use anyhow::Result;
use serde_json::json;

use super::args::{Global, SchemaOf};
use super::{FINE, print};

/// The fabrics that come with the program, or one of them as its file.
pub(super) fn fabrics(name: Option<&str>, json: bool) -> Result<u8> {
    use crate::fabric::Fabric;
    if let Some(name) = name {
        let Some(text) = Fabric::shipped_text(name) else {
            anyhow::bail!("{name:?} is not one of {}", Fabric::names().collect::<Vec<_>>().join(", "));
        };
        // A file of TOML is data already.
        print(text);
        return Ok(FINE);
    }
    if json {
        let told = |name| {
            let fabric = Fabric::shipped(name).transpose()?;
            Ok(fabric.map(|fabric| json!({"name": name, "ranks": fabric.world(), "about": fabric.about()})))
        };
        let all = Fabric::names().map(told).collect::<Result<Vec<_>>>()?;
        print(&format!("{:#}\n", json!(all.into_iter().flatten().collect::<Vec<_>>())));
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
pub(super) fn keys(json: bool) -> Result<u8> {
    use crate::tui::keys::{Action, Keymap};
    if json {
        let keymap = Keymap::load(super::look::keys()?.as_deref())?;
        let told = |&action: &Action| {
            let keys: Vec<String> = keymap.keys_of(action).iter().map(ToString::to_string).collect();
            json!({"action": action.name(), "context": action.context().name(), "keys": keys, "about": action.doc()})
        };
        print(&format!("{:#}\n", json!(Action::ALL.iter().map(told).collect::<Vec<_>>())));
        return Ok(FINE);
    }
    print(&crate::tui::keys::table(&crate::tui::keys::Keymap::load(super::look::keys()?.as_deref())?));
    Ok(FINE)
}

#[cfg(not(feature = "tui"))]
pub(super) fn keys(_: bool) -> Result<u8> {
    anyhow::bail!("this program was built without the screen (feature tui)")
}

/// The themes there are.
#[cfg(feature = "tui")]
#[allow(clippy::unnecessary_wraps, reason = "its twin for a program without the screen fails")]
pub(super) fn themes(json: bool) -> Result<u8> {
    let own = super::look::themes();
    let themes = crate::tui::theme::Themes::new(own.clone());
    if json {
        let told = |name: String| {
            let (own, loaded) = (own.contains_key(&name), themes.load(&name, crate::ramp::Level::TrueColor));
            let warnings = match loaded {
                Ok((_, warnings)) => warnings,
                Err(error) => vec![error.to_string()],
            };
            json!({"name": crate::units::plain(&name), "own": own, "warnings": warnings})
        };
        print(&format!("{:#}\n", json!(themes.names().into_iter().map(told).collect::<Vec<_>>())));
        return Ok(FINE);
    }
    let text: Vec<String> = themes.names().into_iter().map(|name| name + "\n").collect();
    print(&text.concat());
    Ok(FINE)
}

#[cfg(not(feature = "tui"))]
pub(super) fn themes(_: bool) -> Result<u8> {
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
        SchemaOf::Sessions => crate::session::SESSIONS_SCHEMA,
        SchemaOf::Themes => include_str!("schema/themes.json"),
        SchemaOf::Keys => include_str!("schema/keys.json"),
        SchemaOf::Fabrics => include_str!("schema/fabrics.json"),
        SchemaOf::Doctor => include_str!("schema/doctor.json"),
        SchemaOf::Placement => include_str!("schema/placement.json"),
        SchemaOf::Sweep => include_str!("schema/sweep.json"),
        SchemaOf::Changes => include_str!("schema/changes.json"),
        SchemaOf::ScenariosList => include_str!("schema/scenarios_list.json"),
        SchemaOf::Prices => include_str!("schema/prices.json"),
        SchemaOf::Strategies => include_str!("schema/strategies.json"),
        SchemaOf::Built => include_str!("schema/built.json"),
        SchemaOf::Executions => include_str!("schema/executions.json"),
        SchemaOf::Schedule => include_str!("schema/schedule.json"),
    });
    FINE
}
