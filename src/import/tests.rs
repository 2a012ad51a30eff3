//! What all formats have in common.

use super::*;

#[test]
fn an_unknown_content_is_told_the_known_formats() {
    let told = hardware("something else", "notes.txt").unwrap_err();
    assert_eq!((told.line, told.value.as_str()), (Some(1), "\"something else\""));
    for format in Format::ALL {
        assert!(told.expected.contains(format.name()), "{}", told.expected);
    }
    let told = hardware("", "e").unwrap_err().to_string();
    assert!(told.starts_with("e: \"\""), "{told}");
}

#[test]
fn several_hosts_are_named_and_each_tells_its_source() {
    let text = "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n\nGPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n";
    let found = hardware(text, "two.txt").unwrap();
    let names: Vec<_> = found.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(names, ["host1", "host2"]);
    assert_eq!(found.hosts[0].source, "nvidia-smi topo -m in two.txt");
    assert!(found.lacks.iter().any(|lack| lack.starts_with("PCI tree")), "{:?}", found.lacks);
}

#[test]
fn files_are_read_and_unreadable_ones_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.dat");
    assert!(read(&path).unwrap_err().to_string().contains("check the path"));
    std::fs::write(&path, b"\x7fELF\0").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("--sysfs-root"));
    std::fs::write(&path, b"\x1f\x8b\x08\x08\x01").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("<(zcat FILE)"));
    let archive = folder.path().join("x.tar.gz");
    std::fs::write(&archive, b"\x1f\x8b\x08\x08\x01").unwrap();
    assert!(read(&archive).unwrap_err().to_string().contains("tar -xf FILE"));
    std::fs::write(&path, "mlx5_0 port 1 ==> eth2 (Up)\n").unwrap();
    assert_eq!(read(&path).unwrap().formats, [Format::Ibdev2netdev]);
}

#[test]
fn faults_of_a_damaged_file_are_told_so_long_as_anyone_reads_them() {
    let text = "mlx5_0 port 1 ==> eth2 (Up)\nstrange\n".repeat(500);
    let found = hardware(&text, "f").unwrap();
    assert_eq!(found.skipped.len(), Skips::MOST + 1);
}
