//! NVLinks by GPU model, from NVIDIA's data sheets: how many there are, and how many of them one bridge joins.

/// What a model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// of a module that is always wired up; of a card, with all of its bridges
    pub links: u32,
    /// of a card: links of one bridge, which may be left out; `None` for a module
    pub bridge: Option<u32>,
}

/// Words that a driver's name has, all of them, and what that model has; the first that fits.
const MODELS: &[(&[&str], Model)] = &[
    (&["A100", "PCIE"], card(12, 4)),
    (&["A800", "PCIE"], card(8, 4)),
    (&["H100", "PCIE"], card(12, 4)),
    (&["A30"], card(4, 4)),
    (&["A40"], card(4, 4)),
    (&["A6000"], card(4, 4)),
    (&["A5500"], card(4, 4)),
    (&["A5000"], card(4, 4)),
    (&["A4500"], card(4, 4)),
    (&["RTX 3090"], card(4, 4)),
    (&["RTX 2080 TI"], card(2, 2)),
    (&["TITAN RTX"], card(2, 2)),
    (&["QUADRO RTX"], card(2, 2)),
    (&["P100", "SXM"], module(4)),
    (&["V100", "SXM"], module(6)),
    (&["A100", "SXM"], module(12)),
    (&["A800", "SXM"], module(8)),
    (&["H100", "HBM3"], module(18)),
    (&["H100", "SXM"], module(18)),
    (&["H800", "HBM3"], module(8)),
    (&["H800", "SXM"], module(8)),
    (&["H200"], module(18)),
    (&["H20"], module(18)),
    (&["B200"], module(18)),
    (&["B300"], module(18)),
];

const fn card(links: u32, bridge: u32) -> Model {
    Model { links, bridge: Some(bridge) }
}

const fn module(links: u32) -> Model {
    Model { links, bridge: None }
}

/// What is known of a GPU by its driver's name, such as `NVIDIA A100-SXM4-40GB`.
pub fn model(name: &str) -> Option<Model> {
    let name = name.to_uppercase();
    // Cards that are joined in twos and fours with other bridges; nothing is known of single links there.
    if name.contains("NVL") {
        return None;
    }
    MODELS.iter().find(|(words, _)| words.iter().all(|word| name.contains(word))).map(|&(_, model)| model)
}

/// True for consumer cards, between which the driver moves nothing directly (NVIDIA/nccl#1127, #1309).
pub fn without_peers(name: &str) -> bool {
    let name = name.to_uppercase();
    name.contains("GEFORCE") || ["RTX 30", "RTX 40", "RTX 50", "GTX "].iter().any(|series| name.contains(series) && !name.contains("ADA"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_what_drivers_call_them() {
        for (name, expected) in [
            ("NVIDIA A100-SXM4-40GB", Some(module(12))),
            ("NVIDIA A100 80GB PCIe", Some(card(12, 4))),
            ("NVIDIA H100 80GB HBM3", Some(module(18))),
            ("NVIDIA H100 NVL", None),
            ("NVIDIA H200", Some(module(18))),
            ("Tesla V100-SXM2-32GB", Some(module(6))),
            ("NVIDIA GeForce RTX 3090", Some(card(4, 4))),
            ("NVIDIA L20", None),
        ] {
            assert_eq!(model(name), expected, "{name}");
        }
        for (name, expected) in [("NVIDIA GeForce RTX 4090", true), ("NVIDIA RTX 4000 Ada Generation", false), ("NVIDIA RTX A6000", false)]
        {
            assert_eq!(without_peers(name), expected, "{name}");
        }
    }
}
