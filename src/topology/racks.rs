//! Which hosts stand together: what a fabric's file says, or what their names do.

use super::Topology;

/// The racks of a job's hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Racks {
    /// `[rank]`
    pub of: Vec<usize>,
    /// `[rack]`, as shown
    pub names: Vec<String>,
}

impl Racks {
    /// As the placement tells, else by host names that number two things (`r03-node12`, `pod1n7`); `None` where nothing tells, or
    /// all hosts stand together or each by itself.
    pub fn of(topology: &Topology) -> Option<Self> {
        let told: Option<Vec<String>> = topology.ranks.iter().map(|place| place.rack.map(|rack| format!("rack {rack}"))).collect();
        let named = || topology.ranks.iter().map(|place| prefix(&place.host).map(str::to_owned)).collect();
        let keys: Vec<String> = told.or_else(named)?;
        let mut racks = Self::default();
        let mut numbers = std::collections::HashMap::new();
        for key in keys {
            let next = numbers.len();
            let number = *numbers.entry(key.clone()).or_insert(next);
            if number == next {
                racks.names.push(key);
            }
            racks.of.push(number);
        }
        let count = racks.names.len();
        (count > 1 && count * 2 <= topology.hosts().len()).then_some(racks)
    }
}

/// All of a host's name (without its domain) before its last number, if that has a number too.
fn prefix(host: &str) -> Option<&str> {
    let name = host.split('.').next().unwrap_or(host);
    let before = name.trim_end_matches(|c: char| !c.is_ascii_digit()).trim_end_matches(|c: char| c.is_ascii_digit());
    // What stands between the two numbers belongs to the second one.
    let rack = before.trim_end_matches(|c: char| !c.is_ascii_digit());
    (!rack.is_empty()).then_some(rack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    fn topology(hosts: &[&str], rack: impl Fn(usize) -> Option<usize>) -> Topology {
        let place = |(rank, host): (usize, &&str)| Placement { rank, host: (*host).to_owned(), rack: rack(rank), ..Placement::default() };
        Topology::of(hosts.iter().enumerate().map(place).collect())
    }

    #[test]
    fn what_is_told_goes_before_names() {
        let racks = Racks::of(&topology(&["r1n1", "r1n2", "r2n1", "r2n2"], |rank| Some(rank % 2))).unwrap();
        assert_eq!((racks.of, racks.names), (vec![0, 1, 0, 1], vec!["rack 0".to_owned(), "rack 1".to_owned()]));
    }

    #[test]
    fn names_with_two_numbers_tell_racks() {
        let racks = Racks::of(&topology(&["r03-n1.site.org", "r03-n2.site.org", "r11-n1.site.org", "r11-n2.site.org"], |_| None)).unwrap();
        assert_eq!((racks.of, racks.names), (vec![0, 0, 1, 1], vec!["r03".to_owned(), "r11".to_owned()]));
    }

    #[test]
    fn where_nothing_tells_there_are_none() {
        assert_eq!(Racks::of(&topology(&["host000", "host001", "host002", "host003"], |_| None)), None);
        assert_eq!(Racks::of(&topology(&["r1n1", "r1n2", "r1n3"], |_| None)), None, "one rack");
        assert_eq!(Racks::of(&topology(&["r1n1", "r2n1", "r3n1"], |_| None)), None, "a rack each");
        assert_eq!(Racks::of(&topology(&["r1n1", "r1n2", "login", "r2n1", "r2n2"], |_| None)), None);
        assert_eq!(Racks::of(&Topology::default()), None);
    }
}
