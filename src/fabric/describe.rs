//! A fabric in a few lines of text.

use std::fmt::Write;

use super::Fabric;
use super::fault::FaultKind;
use super::layout::Groups;
use crate::units::{format_gbps, format_seconds, format_size};

impl Fabric {
    /// What it is made of, a line for each thing.
    pub fn describe(&self) -> String {
        let layout = &self.layout;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (hosts, ranks) = (layout.hosts.len(), layout.ranks_per_host);
        let mut text = format!("{hosts} host{}, {ranks} rank{} each", plural(hosts), plural(ranks));
        let parts: [(&str, &Option<Groups>); 4] =
            [("sockets", &layout.sockets), ("switches", &layout.switches), ("NICs", &layout.nics), ("racks", &layout.racks)];
        for (what, groups) in parts {
            if let Some(groups) = groups {
                let _ = write!(text, ", {} {what}{}", groups.count, if what == "racks" { "" } else { " each" });
            }
        }
        text.push('\n');
        for rule in &self.rules {
            let truth = &rule.truth;
            let _ = write!(text, "{}: {} GB/s, α {}", rule.class.name(), format_gbps(truth.rate), format_seconds(truth.alpha));
            if let Some((low, high)) = rule.spread {
                let _ = write!(text, ", pairs {} to {} GB/s", format_gbps(low), format_gbps(high));
            }
            for b in &truth.breakpoints {
                let _ = write!(text, ", below {} {} GB/s and α {}", format_size(b.below), format_gbps(b.rate), format_seconds(b.alpha));
            }
            if rule.duplex < 1.0 {
                let _ = write!(text, ", both ways at {} of it", rule.duplex);
            }
            text.push('\n');
        }
        if self.matrix.is_some() {
            text.push_str("every pair has its own rate\n");
        }
        let shared: Vec<&str> =
            self.shared.iter().map(|shared| shared.name.as_str()).chain(self.trunks.iter().map(|t| t.name.as_str())).collect();
        if !shared.is_empty() {
            let _ = writeln!(text, "shared: {}", shared.join(", "));
        }
        if let Some(parts) = &self.parts {
            let _ = write!(text, "hardware: {}, {}", parts.device, parts.pcie);
            if parts.nvlinks > 0 {
                let _ = write!(text, ", {} NVLinks of {} GB/s", parts.nvlinks, format_gbps(parts.nvlink));
            }
            if parts.nic > 0.0 {
                let _ = write!(text, ", NICs of {} GB/s", format_gbps(parts.nic));
            }
            text.push('\n');
        }
        if let Some(noise) = self.noise {
            let _ = writeln!(text, "noise: {}, {} % of the time", noise.kind.name(), noise.cv * 100.0);
        }
        for fault in &self.faults {
            let kind = match fault.kind {
                FaultKind::Slow { .. } => "slow",
                FaultKind::Flaky { .. } => "flaky",
                FaultKind::Dead => "dead",
                FaultKind::Hang { .. } => "hang",
                FaultKind::Narrow { .. } => "narrow",
            };
            let ranks =
                |ranks: &Option<Vec<usize>>| ranks.as_ref().map_or_else(|| "all".to_owned(), |ranks| crate::units::format_ranks(ranks));
            let _ = match fault.kind {
                FaultKind::Narrow { lanes, .. } => writeln!(text, "fault: {kind}, {lanes} lanes at {}", ranks(&fault.from)),
                _ => writeln!(text, "fault: {kind}, from {} to {}", ranks(&fault.from), ranks(&fault.to)),
            };
        }
        text
    }
}
