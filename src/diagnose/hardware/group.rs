//! Measured for another group or with another memory than it will be used for.

use super::evidence::finding;
use crate::diagnose::{Finding, Rule, Severity, Shape, View};
use crate::units::format_ranks;

pub const GROUP: Rule =
    Rule { name: "mismatch", summary: "it was measured in a smaller group, or with other memory, than it may be used for", check };

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let note = |id: &str, say: String| finding(GROUP.name, format!("mismatch {id}"), Severity::Note, say.clone(), Shape::Mismatch { say });
    let mut findings = Vec::new();
    let group = &measured.provenance.group;
    if !group.is_empty() {
        let mut members = group.clone();
        members.sort_unstable();
        let say = format!(
            "measured in a group of {}, ranks {} of the job: in a larger group rates may differ",
            group.len(),
            format_ranks(&members)
        );
        findings.push(note("group", say));
    }
    let gpus: usize = measured.topology.hardware.iter().map(|hardware| hardware.gpus.len()).sum();
    if gpus > 0 && measured.topology.ranks.iter().all(|placement| placement.gpu.is_none()) {
        let linked = measured.topology.hardware.iter().any(|hardware| !hardware.gpu_links.is_empty());
        let over = if linked { "links of their own" } else { "PCIe" };
        findings
            .push(note("memory", format!("host memory was measured; the {gpus} GPUs there reach each other by {over}, at other rates")));
    }
    findings
}
