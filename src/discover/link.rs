//! PCI Express links as the kernel tells them: `current_link_speed`, `max_link_width` and the like.

use std::path::Path;

use super::config::Config;
use super::read;
use crate::topology::Lanes;

/// What a device says of a link of its own. For root ports and a switch's downstream ports that is the link below them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Told {
    pub(super) now: Option<Lanes>,
    pub(super) most: Option<Lanes>,
    /// what it says that is no speed or width, such as `width 0`
    pub(super) odd: Option<String>,
}

/// Lanes that a link can have. 0 is none, and 63 and 255 are what a device reads that does not answer.
pub(super) const fn sane_width(width: u32) -> bool {
    matches!(width, 1..=62)
}

/// From the kernel's files, or where a recorded tree has none of them from the configuration space.
pub(super) fn of(folder: &Path, config: &Config) -> Told {
    let word = |name: &str| read::word(&folder.join(name));
    let now = (word("current_link_speed"), word("current_link_width"));
    let most = (word("max_link_speed"), word("max_link_width"));
    if [&now.0, &now.1, &most.0, &most.1].iter().all(|word| word.is_none()) {
        let (now, most) = config.link().unwrap_or_default();
        return Told { now, most, odd: None };
    }
    let odd = [("now", &now), ("at most", &most)].into_iter().find_map(|(which, (speed, width))| {
        let speed = speed.as_ref().filter(|text| self::speed(text).is_none()).map(|text| format!("speed {text}"));
        let width = width.as_ref().filter(|text| self::width(text).is_none()).map(|text| format!("width {text}"));
        let odd: Vec<String> = width.into_iter().chain(speed).collect();
        (!odd.is_empty()).then(|| format!("{} {which}", odd.join(" and ")))
    });
    Told { now: lanes(now.0.as_deref(), now.1.as_deref()), most: lanes(most.0.as_deref(), most.1.as_deref()), odd }
}

fn lanes(speed: Option<&str>, width: Option<&str>) -> Option<Lanes> {
    Some(Lanes { speed: self::speed(speed?)?, width: self::width(width?)? })
}

/// `16.0 GT/s PCIe`, `8 GT/s`; `None` for `Unknown` and the like.
fn speed(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let speed: f64 = number.parse().ok()?;
    (unit.starts_with("GT/s") && speed > 0.0 && speed <= 256.0).then_some(speed)
}

fn width(text: &str) -> Option<u32> {
    text.trim_start_matches('x').parse().ok().filter(|&width| sane_width(width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::made::Tree;

    #[test]
    fn the_kernels_words_are_read() {
        for (text, expected) in
            [("16.0 GT/s PCIe", Some(16.0)), ("2.5 GT/s", Some(2.5)), ("8 GT/s", Some(8.0)), ("64.0 GT/s PCIe", Some(64.0))]
        {
            assert_eq!(speed(text), expected, "{text}");
        }
        for text in ["Unknown", "Unknown speed", "-1 GT/s", "nan GT/s", "16.0", "inf GT/s PCIe"] {
            assert_eq!(speed(text), None, "{text}");
        }
        assert_eq!(["16", "0", "63", "255", "x8", "-1"].map(width), [Some(16), None, None, None, Some(8), None]);
    }

    #[test]
    fn what_is_no_link_is_told() {
        let tree = Tree::new();
        tree.link("d", "2.5 GT/s PCIe", "0", "16.0 GT/s PCIe", "16");
        let told = of(&tree.path("d"), &Config::default());
        assert_eq!((told.now, told.most), (None, Some(Lanes { speed: 16.0, width: 16 })));
        assert_eq!(told.odd.as_deref(), Some("width 0 now"));
        tree.link("e", "Unknown", "63", "Unknown", "255");
        assert_eq!(of(&tree.path("e"), &Config::default()).odd.as_deref(), Some("width 63 and speed Unknown now"));
        assert_eq!(of(&tree.path("absent"), &Config::default()), Told::default());
    }
}
