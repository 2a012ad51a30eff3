//! What a session was made of that another tool measured.

use serde::{Deserialize, Serialize};

use crate::sample::Pattern;
use crate::units::{format_gbps, format_seconds, format_size, plain};

/// A table of another tool's output: what its numbers mean, and whether the session's samples are of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// as it was named on the command line
    pub file: String,
    /// where in it the table begins, from 1
    pub line: usize,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// as the tool calls it
    pub test: String,
    /// of the numbers as printed
    pub unit: String,
    /// who sends, as it was understood
    pub orientation: String,
    /// the output told the size; else it is the tool's default, or stands for one
    pub size_told: bool,
    /// of its samples
    #[serde(default)]
    pub patterns: Vec<Pattern>,
    /// bytes of its samples, ascending
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// pairs, fans and rings times sizes that have a number
    pub samples: u64,
    /// it is in the session's samples
    pub taken: bool,
    /// why not
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// what many ranks did together, which is of no pair and in no sample
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<Collective>,
    /// how many ranks did, where it is told
    #[serde(default)]
    pub ranks: usize,
}

/// One size of a collective operation: all ranks of the table take part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// as the tool counts them
    pub bytes: u64,
    pub seconds: f64,
    /// of the same where the result takes the place of the input
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_seconds: Option<f64>,
    /// bytes/s, as the tool works it out of the time; not the rate of any link
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_bandwidth: Option<f64>,
    /// bytes/s of all pairs that sent at the same time, added up; not the rate of any link
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
}

impl Imported {
    /// Safe to show: names in files are data.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self {
            file: plain(&self.file),
            tool: plain(&self.tool),
            version: self.version.as_deref().map(plain),
            test: plain(&self.test),
            unit: plain(&self.unit),
            orientation: plain(&self.orientation),
            why: plain(&self.why),
            notes: self.notes.iter().map(|note| plain(note)).collect(),
            ..self.clone()
        }
    }

    /// `nvbandwidth v0.8 device_to_device_memcpy_read_ce`
    pub fn name(&self) -> String {
        let version = self.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        format!("{}{version} {}", self.tool, self.test)
    }

    /// What a reader of its numbers must know: unit, who sends, size, notes, and why it is in no sample.
    pub fn means(&self) -> String {
        let size = if self.size_told || self.sizes.is_empty() { "" } else { "; the size is not told, the tool's default stands for it" };
        let notes = self.notes.iter().fold(String::new(), |all, note| all + "; " + note);
        let why = if self.why.is_empty() { String::new() } else { format!("; {}", self.why) };
        format!("{}; {}{size}{notes}{why}", self.unit, self.orientation)
    }

    /// What it is of: `56 samples`, or `28 sizes of all 8 ranks together`.
    pub fn amount(&self) -> String {
        let many = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let ranks = if self.ranks > 1 { format!("all {} ranks", self.ranks) } else { "all ranks".to_owned() };
        match (self.samples, self.collectives.len() as u64) {
            (0, 0) => "nothing".to_owned(),
            (0, sizes) => format!("{} of {ranks} together", many(sizes, "size")),
            (samples, _) => many(samples, "sample"),
        }
    }
}

/// What all ranks did together, a line a size: `8 B        17.93 µs`.
pub fn collective_lines(table: &Imported) -> Vec<String> {
    let line = |collective: &Collective| {
        let bus = collective.bus_bandwidth.filter(|bus| *bus > 0.0);
        let bus = bus.map_or_else(String::new, |bus| format!(", bus bandwidth {} GB/s", format_gbps(bus)));
        let in_place = collective.in_place_seconds.map_or_else(String::new, |seconds| format!(", {} in place", format_seconds(seconds)));
        let sum = collective.sum.filter(|sum| *sum > 0.0);
        let sum = sum.map_or_else(String::new, |sum| format!(", all pairs together {} GB/s", format_gbps(sum)));
        format!("{:<9} {}{in_place}{bus}{sum}", format_size(collective.bytes), format_seconds(collective.seconds))
    };
    if table.samples > 0 { Vec::new() } else { table.collectives.iter().map(line).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_table_is_of_is_told_in_words() {
        let collective = Collective { bytes: 8, seconds: 1e-5, in_place_seconds: None, bus_bandwidth: None, sum: None };
        let ring = Imported { collectives: vec![collective; 2], ranks: 8, ..Imported::default() };
        assert_eq!(ring.amount(), "2 sizes of all 8 ranks together");
        let pairs = Collective { bytes: 8, seconds: 1e-5, in_place_seconds: None, bus_bandwidth: None, sum: Some(4e9) };
        let crowd = Imported { collectives: vec![pairs], ..Imported::default() };
        assert_eq!(collective_lines(&crowd), ["8 B       10.0 µs, all pairs together 4.00 GB/s"]);
        let table = Imported {
            tool: "x\u{1b}[31m".to_owned(),
            version: Some("v1".to_owned()),
            test: "t".to_owned(),
            unit: "GB/s".to_owned(),
            orientation: "row sends".to_owned(),
            sizes: vec![16],
            samples: 1,
            notes: vec!["n".to_owned()],
            why: "another was taken".to_owned(),
            ..Imported::default()
        };
        assert_eq!(table.plain().name(), "x[31m v1 t");
        assert_eq!(table.amount(), "1 sample");
        assert_eq!(table.means(), "GB/s; row sends; the size is not told, the tool's default stands for it; n; another was taken");
    }
}
