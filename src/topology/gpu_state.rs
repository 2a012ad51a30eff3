//! How GPUs were doing while something was measured on them.

use serde::{Deserialize, Serialize};

use super::Lanes;

/// One look at a GPU, as its management library tells it; what that does not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuState {
    /// MHz
    pub sm_clock: Option<u32>,
    /// MHz
    pub memory_clock: Option<u32>,
    /// why its clocks are held down; empty when they are not
    pub throttled: Vec<String>,
    /// its PCIe link as it is trained now, and as GPU and slot could at most
    pub pcie: Option<Lanes>,
    pub pcie_most: Option<Lanes>,
    /// watts
    pub power: Option<f64>,
    /// °C
    pub temperature: Option<u32>,
}

/// All looks at a rank's GPU during a sweep, each right after a probe of that rank, together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRange {
    pub rank: usize,
    pub looks: u64,
    /// looks that found its clocks held down
    #[serde(default, skip_serializing_if = "is_none")]
    pub throttled: u64,
    /// why, each once
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// looks after transfers over its PCIe link that found it trained below what it could be
    #[serde(default, skip_serializing_if = "is_none")]
    pub narrow: u64,
    /// least that the link was trained to after such transfers, and what it could be
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie: Option<(Lanes, Lanes)>,
    /// MHz, least and most
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<(u32, u32)>,
    /// watts, least and most
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<(f64, f64)>,
    /// °C, least and most
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<(u32, u32)>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Most reasons that are kept.
const REASONS: usize = 16;

impl GpuRange {
    /// A rank that nobody has looked at.
    pub fn of(rank: usize) -> Self {
        Self { rank, ..Self::default() }
    }

    /// Take in a look. `loaded`: what was measured went over the GPU's PCIe link, which rests at a lower speed else.
    pub fn add(&mut self, state: &GpuState, loaded: bool) {
        self.looks += 1;
        widen(&mut self.sm_clock, state.sm_clock);
        widen(&mut self.memory_clock, state.memory_clock);
        widen(&mut self.power, state.power);
        widen(&mut self.temperature, state.temperature);
        self.throttled += u64::from(!state.throttled.is_empty());
        for reason in &state.throttled {
            if !self.reasons.contains(reason) && self.reasons.len() < REASONS {
                self.reasons.push(reason.clone());
            }
        }
        if let (true, Some(now), Some(most)) = (loaded, state.pcie, state.pcie_most) {
            self.narrow += u64::from(now.rate() < most.rate());
            if self.pcie.is_none_or(|(least, _)| now.rate() < least.rate()) {
                self.pcie = Some((now, most));
            }
        }
    }

    /// True if something is there now that was not: a reason to be held down, or a lower link.
    pub fn is_news(&self, before: &Self) -> bool {
        self.reasons.len() > before.reasons.len() || self.pcie != before.pcie || before.looks == 0
    }

    /// The facts, each short: `SM 1,410–1,980 MHz`, `PCIe Gen5 x16`, `throttled in 3 of 40 looks (heat)`.
    pub fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        let whole = |range: Option<(u32, u32)>| range.map(|(low, high)| (f64::from(low), f64::from(high)));
        for (name, range, unit) in [
            ("SM", whole(self.sm_clock), "MHz"),
            ("memory", whole(self.memory_clock), "MHz"),
            ("", whole(self.temperature), "°C"),
            ("", self.power, "W"),
        ] {
            let Some((low, high)) = range else { continue };
            let text = if format!("{low:.0}") == format!("{high:.0}") { format!("{low:.0}") } else { format!("{low:.0}–{high:.0}") };
            told.push(format!("{name} {text} {unit}").trim_start().to_owned());
        }
        if let Some((least, most)) = self.pcie {
            let of = if self.narrow > 0 { format!(" of {most}") } else { String::new() };
            told.push(format!("PCIe {least}{of}"));
        }
        if self.throttled > 0 {
            told.push(format!("throttled in {} of {} looks ({})", self.throttled, self.looks, self.reasons.join(", ")));
        } else if self.looks > 0 {
            told.push("not throttled".to_owned());
        }
        told
    }

    /// The same with texts made safe to show by `plain`; `None` for a range that is none: recorded sessions are data.
    pub fn cleaned(&self, plain: impl Fn(&str) -> String) -> Option<Self> {
        let sound = |lanes: &Lanes| lanes.speed.is_finite() && lanes.speed > 0.0;
        let power = self.power.is_none_or(|(low, high)| low.is_finite() && high.is_finite());
        let good = power && self.pcie.is_none_or(|(now, most)| sound(&now) && sound(&most)) && self.throttled <= self.looks;
        good.then(|| Self { reasons: self.reasons.iter().take(REASONS).map(|reason| plain(reason)).collect(), ..self.clone() })
    }
}

fn widen<T: Copy + PartialOrd>(range: &mut Option<(T, T)>, value: Option<T>) {
    let Some(value) = value else { return };
    let (low, high) = range.get_or_insert((value, value));
    if value < *low {
        *low = value;
    }
    if value > *high {
        *high = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(clock: u32, generation: u32, throttled: &[&str]) -> GpuState {
        GpuState {
            sm_clock: Some(clock),
            memory_clock: None,
            throttled: throttled.iter().map(|&reason| reason.to_owned()).collect(),
            pcie: Lanes::of_generation(generation, 16),
            pcie_most: Lanes::of_generation(5, 16),
            power: Some(300.4),
            temperature: Some(54),
        }
    }

    #[test]
    fn looks_add_up_and_only_a_loaded_link_counts() {
        let mut range = GpuRange::of(3);
        range.add(&state(1980, 1, &[]), false);
        assert_eq!(range.told(), ["SM 1980 MHz", "54 °C", "300 W", "not throttled"], "an idle link tells nothing");
        let before = range.clone();
        range.add(&state(1410, 5, &[]), true);
        assert!(range.is_news(&before) && range.narrow == 0);
        let before = range.clone();
        range.add(&state(1500, 5, &[]), true);
        assert!(!range.is_news(&before), "within what was seen");
        range.add(&state(1410, 4, &["heat", "power limit"]), true);
        assert!(range.is_news(&before));
        let told = "throttled in 1 of 4 looks (heat, power limit)";
        assert_eq!(range.told(), ["SM 1410–1980 MHz", "54 °C", "300 W", "PCIe Gen4 x16 of Gen5 x16", told]);
        assert_eq!((range.looks, range.narrow), (4, 1));
        assert_eq!(range.cleaned(str::to_owned), Some(range.clone()));
        assert_eq!(GpuRange { power: Some((f64::NAN, 1.0)), ..range }.cleaned(str::to_owned), None);
    }
}
