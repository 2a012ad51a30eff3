use crate::sample::Pattern;

/// A field of the form, named as its setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// switched on or off, each by itself
    Pattern(Pattern),
    Ranks,
    Sizes,
    Peers,
    Widths,
    Shifts,
    Pairs,
    Isolated,
    Repeats,
    Warmup,
    Ci,
    Budget,
    Window,
    Timeout,
    Seed,
    Mover,
    Memory,
    Buffers,
    Gpus,
    /// the button
    Start,
}

/// Lines that the patterns take.
pub const PATTERN_LINES: usize = 4;

impl Field {
    /// All fields as they stand, line by line.
    pub const LINES: [&'static [Self]; 17] = [
        &[Self::Pattern(Pattern::Local), Self::Pattern(Pattern::Peer), Self::Pattern(Pattern::Duplex)],
        &[Self::Pattern(Pattern::FanIn), Self::Pattern(Pattern::FanOut), Self::Pattern(Pattern::Relay)],
        &[Self::Pattern(Pattern::HostToDevice), Self::Pattern(Pattern::Custom)],
        &[Self::Pattern(Pattern::DeviceToHost)],
        &[Self::Ranks],
        &[Self::Sizes],
        &[Self::Peers],
        &[Self::Widths, Self::Shifts],
        &[Self::Pairs, Self::Isolated],
        &[Self::Repeats, Self::Warmup],
        &[Self::Ci, Self::Budget],
        &[Self::Window, Self::Timeout],
        &[Self::Seed],
        &[Self::Mover],
        &[Self::Memory, Self::Buffers],
        &[Self::Gpus],
        &[Self::Start],
    ];

    /// Line and column.
    pub fn place(self) -> (usize, usize) {
        let at = |fields: &[Self]| fields.iter().position(|field| *field == self);
        Self::LINES.iter().enumerate().find_map(|(line, fields)| Some((line, at(fields)?))).unwrap_or_default()
    }

    /// The name on the screen: the setting's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pattern(_) => "patterns",
            Self::Ranks => "ranks",
            Self::Sizes => "sizes",
            Self::Peers => "peers",
            Self::Widths => "widths",
            Self::Shifts => "shifts",
            Self::Pairs => "pairs",
            Self::Isolated => "isolated",
            Self::Repeats => "repeats",
            Self::Warmup => "warmup",
            Self::Ci => "ci",
            Self::Budget => "budget",
            Self::Window => "window",
            Self::Timeout => "timeout",
            Self::Seed => "seed",
            Self::Mover => "mover",
            Self::Memory => "memory",
            Self::Gpus => "gpus",
            Self::Buffers => "buffers",
            Self::Start => "start",
        }
    }

    /// What the field means, in one sentence.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Pattern(Pattern::Local) => "local: a copy inside each rank",
            Self::Pattern(Pattern::HostToDevice) => "host_to_device: a copy from the host's memory into each rank's GPU (memory cuda)",
            Self::Pattern(Pattern::DeviceToHost) => "device_to_host: a copy from each rank's GPU into the host's memory (memory cuda)",
            Self::Pattern(Pattern::Peer) => "peer: each rank sends to each other one, one at a time",
            Self::Pattern(Pattern::Duplex) => "duplex: two ranks send to each other at once",
            Self::Pattern(Pattern::FanIn) => "fan_in: several ranks send to one at once",
            Self::Pattern(Pattern::FanOut) => "fan_out: one rank sends to several at once",
            Self::Pattern(Pattern::Relay) => "relay: every rank passes on to the one a shift further",
            Self::Pattern(Pattern::Custom) => "custom: the transfers of a pattern file (--pattern-file)",
            Self::Ranks => "ranks that take part, such as 0-3,7",
            Self::Sizes => "message sizes, such as 4KiB..64MiB (×4 steps) or 4KiB,1MiB",
            Self::Peers => "which ranks a fan's peers are, seen from its root",
            Self::Widths => "peers of a fan, such as 1,2,4; auto: all on its host",
            Self::Shifts => "how much further a relay passes on, such as 1 or 1,4",
            Self::Pairs => "pairs to measure of each rank, taken at random; all of a large world are many",
            Self::Isolated => "no: rounds of probes that cannot disturb each other; yes: one at a time",
            Self::Repeats => "timed repeats, with ci at most; 6 or more give an interval",
            Self::Warmup => "untimed repeats before them",
            Self::Ci => "repeat until the interval is within this share of the median, such as 5%",
            Self::Budget => "longest time for all of it, seconds",
            Self::Window => "messages outstanding at a time; 1 measures single messages",
            Self::Timeout => "longest time of one probe, seconds; a hang becomes a timeout",
            Self::Seed => "decides the order of the probes and the payload",
            Self::Mover => "how bytes travel",
            Self::Memory => "where the buffers lie: host memory, or cuda: that of each rank's GPU",
            Self::Gpus => "of cuda memory: each rank's GPU on its host, in order: numbers, UUIDs or PCI addresses",
            Self::Buffers => "rotate: cold memory, as real data is; reuse: hot in cache",
            Self::Start => "start this sweep",
        }
    }

    /// What a field without text means; empty if it must have one.
    pub const fn empty(self) -> &'static str {
        match self {
            Self::Ranks | Self::Pairs => "all",
            Self::Widths => "auto",
            Self::Gpus => "by rank",
            Self::Ci => "off",
            Self::Budget => "none",
            _ => "",
        }
    }

    /// True for fields that are chosen, not typed.
    pub const fn is_choice(self) -> bool {
        matches!(self, Self::Peers | Self::Mover | Self::Memory | Self::Buffers | Self::Isolated)
    }

    /// The field that a refusal of [`crate::sweep::SweepSettings::check`] belongs to.
    pub fn of_setting(setting: &str) -> Self {
        let named = |field: &&Self| field.name() == setting;
        match setting {
            "transfers" => Self::Pattern(Pattern::Custom),
            _ => Self::LINES.iter().flat_map(|fields| fields.iter()).find(named).copied().unwrap_or(Self::Start),
        }
    }
}
