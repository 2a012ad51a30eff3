//! Processor packages and caches: `/sys/devices/system/cpu` and `/proc/cpuinfo`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::read;
use crate::topology::Hardware;
use crate::topology::hardware::{Cache, CacheKind, Package};
use crate::units::{parse_size, plain};

/// Caches of one processor that are looked at.
const MOST_CACHES: usize = 8;

/// Fill in packages and caches of the machine below `root`.
pub(super) fn fill(root: &Path, hardware: &mut Hardware) {
    let folder = root.join("sys/devices/system/cpu");
    let info = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let models = models(&info);
    let mut packages: BTreeMap<usize, (Package, HashSet<Core>, BTreeSet<String>)> = BTreeMap::new();
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    for name in read::names(&folder) {
        let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse::<usize>().ok()) else { continue };
        let cpu_folder = folder.join(&name);
        let topology = cpu_folder.join("topology");
        // One that is switched off has none.
        if cpu >= read::MOST_CORES || !topology.is_dir() {
            continue;
        }
        // Without a number, as in some virtual machines, there is one package.
        let id = read::number(&topology.join("physical_package_id")).and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
        let (package, cores, names) = packages.entry(id).or_default();
        package.cpus.push(cpu);
        cores.insert(core(&topology, cpu));
        names.extend(models.get(&cpu).or_else(|| models.get(&usize::MAX)).cloned());
        caches(&cpu_folder, cpu, &mut seen, &mut hardware.caches);
    }
    let packages = packages.into_iter().map(|(id, (package, cores, names))| {
        let model = names.into_iter().collect::<Vec<_>>().join(" + ");
        Package { id, model, cores: cores.len(), ..package }
    });
    hardware.packages = packages.collect();
    hardware.caches.sort_by(|a, b| (a.level, a.kind, &a.cpus).cmp(&(b.level, b.kind, &b.cpus)));
}

/// What tells a physical core from others of its package.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Core {
    /// its logical processors
    Siblings(Vec<usize>),
    /// die, and core on it
    Numbers(i64, i64),
}

fn core(topology: &Path, cpu: usize) -> Core {
    let siblings =
        read::cpus(topology, "core_cpus_list", "core_cpus").or_else(|| read::cpus(topology, "thread_siblings_list", "thread_siblings"));
    if let Some(siblings) = siblings.filter(|siblings| !siblings.is_empty()) {
        return Core::Siblings(siblings);
    }
    match read::number(&topology.join("core_id")) {
        Some(core) => Core::Numbers(read::number(&topology.join("die_id")).unwrap_or(0), core),
        None => Core::Siblings(vec![cpu]),
    }
}

/// The caches of one processor that no other one has told yet.
fn caches(folder: &Path, cpu: usize, seen: &mut HashSet<(usize, usize)>, caches: &mut Vec<Cache>) {
    for index in 0..MOST_CACHES {
        let cache = folder.join(format!("cache/index{index}"));
        if seen.contains(&(index, cpu)) {
            continue;
        }
        let Some(level) = read::number(&cache.join("level")).and_then(|level| u32::try_from(level).ok()) else { continue };
        let cpus = read::cpus(&cache, "shared_cpu_list", "shared_cpu_map").filter(|cpus| cpus.contains(&cpu)).unwrap_or_else(|| vec![cpu]);
        seen.extend(cpus.iter().map(|&cpu| (index, cpu)));
        caches.push(Cache {
            level,
            kind: match read::word(&cache.join("type")).as_deref() {
                Some("Data") => CacheKind::Data,
                Some("Instruction") => CacheKind::Instruction,
                _ => CacheKind::Unified,
            },
            bytes: read::word(&cache.join("size")).and_then(|size| parse_size(&size).ok()).unwrap_or(0),
            cpus,
        });
    }
}

/// Model of each logical processor; what is told once for all stands at `usize::MAX`.
fn models(info: &str) -> HashMap<usize, String> {
    let mut models = HashMap::new();
    let (mut cpu, mut implementer) = (usize::MAX, 0);
    for line in info.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let hex = || u32::from_str_radix(value.trim_start_matches("0x"), 16).unwrap_or(0);
        match key.trim() {
            "processor" => cpu = value.parse().unwrap_or(usize::MAX),
            "CPU implementer" => implementer = hex(),
            "CPU part" => {
                models.entry(cpu).or_insert_with(|| arm(implementer, hex()));
            }
            // POWER says `cpu`, others say the model's name.
            "model name" | "cpu" => {
                models.insert(cpu, plain(value).chars().take(100).collect());
            }
            _ => {}
        }
    }
    models
}

/// Arm's processors name themselves by numbers (Arm's MIDR register; the names are those of `lscpu`).
fn arm(implementer: u32, part: u32) -> String {
    let name = match (implementer, part) {
        (0x41, 0xd0c) => "Neoverse-N1",
        (0x41, 0xd40) => "Neoverse-V1",
        (0x41, 0xd49) => "Neoverse-N2",
        (0x41, 0xd4f) => "Neoverse-V2",
        (0x41, 0xd83) => "Neoverse-V3AE",
        (0x41, 0xd84) => "Neoverse-V3",
        (0x41, 0xd85) => "Cortex-X925",
        (0x41, 0xd87) => "Cortex-A725",
        (0x41, 0xd8e) => "Neoverse-N3",
        (0x46, 0x001) => "A64FX",
        (0xc0, 0xac3..=0xac5) => "Ampere-1",
        _ => return format!("Arm {implementer:#04x} {part:#05x}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::made::Tree;

    fn read(tree: &Tree) -> Hardware {
        let mut hardware = Hardware::default();
        fill(&tree.root(), &mut hardware);
        hardware
    }

    #[test]
    fn two_sockets_with_two_threads_a_core() {
        let tree = Tree::new();
        for cpu in 0..8 {
            // Threads are 0 and 4, 1 and 5, ...; cores 0 and 1 sit in the first socket, and both sockets count cores from 0.
            let core = cpu % 4;
            tree.cpu(cpu, core / 2, core % 2, &format!("{core},{}", core + 4));
            tree.cache(cpu, 0, (1, "Data", "48K"), &format!("{core},{}", core + 4));
            let socket = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
            tree.cache(cpu, 3, (3, "Unified", "32768K"), socket);
        }
        tree.write("sys/devices/system/cpu/cpu8/online", "0");
        tree.write("sys/devices/system/cpu/cpufreq/policy0", "");
        tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Xeon\u{1b}\nflags\t: fpu\n\nprocessor\t: 2\nmodel name\t: Xeon\n");
        let hardware = read(&tree);
        let told: Vec<_> = hardware.packages.iter().map(|package| (package.id, package.cores, package.cpus.as_slice())).collect();
        assert_eq!(told, [(0, 2, [0, 1, 4, 5].as_slice()), (1, 2, &[2, 3, 6, 7])]);
        assert_eq!(hardware.packages[0].model, "Xeon");
        let told: Vec<_> = hardware.caches.iter().map(|cache| (cache.level, cache.kind, cache.bytes >> 10, cache.cpus.len())).collect();
        let (first, last) = ((1, CacheKind::Data, 48, 2), (3, CacheKind::Unified, 32768, 4));
        assert_eq!(told, [first, first, first, first, last, last]);
    }

    #[test]
    fn models_are_named_on_every_architecture() {
        let model = |info: &str, cpu: usize| models(info).get(&cpu).cloned();
        assert_eq!(model("processor : 3\nCPU implementer : 0x41\nCPU part : 0xd4f\n", 3).as_deref(), Some("Neoverse-V2"));
        assert_eq!(model("processor : 3\nCPU implementer : 0x99\nCPU part : 0x1\n", 3).as_deref(), Some("Arm 0x99 0x001"));
        assert_eq!(model("processor : 3\ncpu\t: POWER9, altivec supported\n", 3).as_deref(), Some("POWER9, altivec supported"));
    }

    #[test]
    fn a_processor_without_numbers_is_a_core_of_the_first_package() {
        let tree = Tree::new();
        tree.write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1");
        tree.write("sys/devices/system/cpu/cpu1/topology/physical_package_id", "-1");
        let hardware = read(&tree);
        assert_eq!(hardware.packages, [Package { id: 0, cores: 2, cpus: vec![0, 1], ..Package::default() }]);
    }
}
