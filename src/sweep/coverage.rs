use super::{SweepSettings, Work};
use crate::sample::Pattern;
use crate::topology::Topology;
use crate::units::format_count;

/// How much of all pairs a sweep measures that does not measure all, a line a pattern.
pub fn coverage(settings: &SweepSettings, topology: &Topology) -> Vec<String> {
    if settings.pairs == 0 {
        return Vec::new();
    }
    let work = Work::new(settings, topology);
    let ranks = work.ranks().len().max(1) as u64;
    work.coverage()
        .map(|(pattern, some, all)| {
            let classes = work.classes_of(pattern);
            let parts = if classes.len() > 1 {
                let names: Vec<&str> = classes.iter().map(|class| class.name()).collect();
                format!(", in equal parts of {}", names.join(" and "))
            } else {
                String::new()
            };
            // Of two ends each pair of duplex has both.
            let ends = if pattern == Pattern::Duplex { 2 } else { 1 };
            let (each, exact) = (ends * some / ranks, (ends * some).is_multiple_of(ranks));
            let about = if exact { "" } else { "about " };
            let (some, share, all) = (format_count(some), percent(some, all), format_count(all));
            format!("{}: {some} of {all} pairs ({share}), {about}{each} from each rank{parts}", pattern.name())
        })
        .collect()
}

fn percent(some: u64, all: u64) -> String {
    let percent = some as f64 / all.max(1) as f64 * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made::on;

    #[test]
    fn what_is_left_out_is_said() {
        let settings = |pattern, pairs| SweepSettings { patterns: vec![Pattern::Local, pattern], pairs, ..SweepSettings::default() };
        let topology = on(&[8; 128]);
        assert_eq!(
            coverage(&settings(Pattern::Peer, 8), &topology),
            ["peer: 8,192 of 1,047,552 pairs (0.8 %), 8 from each rank, in equal parts of intra_node and inter_node"]
        );
        assert_eq!(coverage(&settings(Pattern::Peer, 0), &topology), [""; 0]);
        assert_eq!(coverage(&settings(Pattern::Peer, 2), &on(&[4])), ["peer: 8 of 12 pairs (67 %), 2 from each rank"]);
        assert_eq!(coverage(&settings(Pattern::Duplex, 2), &on(&[1; 8])), ["duplex: 8 of 28 pairs (29 %), 2 from each rank"]);
    }
}
