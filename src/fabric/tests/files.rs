//! Fabric files, right and wrong.

use crate::fabric::{Bound, Breakpoint, Class, Demand, Fabric, Noise, NoiseKind, Resource, ResourceKind, Transfer, completions, shares};

/// Two hosts of four ranks on two sockets, nothing special.
const PLAIN: &str = r#"about = "two small hosts"
seed = 5

[hosts]
names = ["a", "b"]
ranks = 4
sockets = 2
memory = "2GiB"
cache = "8MiB"

[path.local]
alpha = "1us"
rate = "10GB/s"

[path.intra_node]
alpha = "2us"
rate = "8GB/s"

[path.inter_node]
alpha = "20us"
rate = "1GB/s"
"#;

fn with(more: &str) -> Fabric {
    Fabric::parse(&format!("{PLAIN}{more}"), "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_plain_file_is_read_whole() {
    let fabric = with("[noise]\nkind = \"lognormal\"\ncv = 0.03\n");
    assert_eq!((fabric.name(), fabric.about(), fabric.seed(), fabric.world()), ("test.toml", "two small hosts", 5, 8));
    assert_eq!(fabric.noise(), Some(Noise { kind: NoiseKind::Lognormal, cv: 0.03 }));
    assert_eq!(fabric.clone().with_noise(None).noise(), None);
    let topology = fabric.topology();
    assert_eq!(topology.node_of(), [0, 0, 0, 0, 1, 1, 1, 1]);
    let place = &topology.ranks[6];
    assert_eq!((place.rank, place.host.as_str(), place.numa, place.cores.as_slice(), place.cache), (6, "b", Some(1), &[2][..], 8 << 20));
    assert_eq!((place.memory_available, place.memory_total), (8 << 30, 8 << 30));
    for (from, to, class, alpha, rate) in [
        (3, 3, Class::Local, 1e-6, 10e9),
        (0, 1, Class::SameSocket, 2e-6, 8e9),
        (0, 2, Class::CrossSocket, 2e-6, 8e9),
        (7, 0, Class::SameRack, 20e-6, 1e9),
    ] {
        assert_eq!(fabric.class(from, to), class);
        assert_eq!(topology.path(from, to), class.coarse());
        let truth = fabric.truth(from, to);
        assert_eq!((truth.alpha, truth.rate), (alpha, rate));
    }
}

#[test]
fn the_finest_path_that_is_told_wins() {
    let fabric = with("[path.cross_socket]\nalpha = \"3us\"\nrate = \"4GB/s\"\n[[pair]]\nfrom = 0\nto = 2\nrate = \"5GB/s\"\n");
    let rate = |from, to| fabric.truth(from, to).rate;
    assert_eq!((rate(0, 1), rate(0, 2), rate(2, 0), rate(1, 2)), (8e9, 5e9, 4e9, 4e9));
    assert_eq!(fabric.truth(0, 2).alpha, 3e-6);
}

#[test]
fn below_a_breakpoint_another_line_holds_for_fast_pairs_too() {
    let fabric = with(
        "breakpoints = [{ below = \"4KiB\", alpha = \"5us\", rate = \"500MB/s\" }, { below = \"64KiB\", alpha = \"10us\", rate = \"800MB/s\" }]\n\
         [[pair]]\nfrom = 0\nto = 4\nrate = \"2GB/s\"\nalpha = \"30us\"\n",
    );
    let truth = fabric.truth(4, 0);
    assert_eq!((truth.at(4095), truth.at(4096), truth.at(65536)), ((5e-6, 5e8), (10e-6, 8e8), (20e-6, 1e9)));
    let twice = fabric.truth(0, 4);
    assert_eq!((twice.alpha, twice.rate, twice.breakpoints[0]), (30e-6, 2e9, Breakpoint { below: 4096, alpha: 5e-6, rate: 1e9 }));
    assert!((twice.seconds(65536) - (30e-6 + 65536.0 / 2e9)).abs() < 1e-15);
}

/// What a set of messages that run at once gets, GB/s.
fn rates(fabric: &Fabric, pairs: &[(usize, usize)]) -> Vec<f64> {
    let demands: Vec<Demand> = pairs.iter().map(|&(from, to)| Demand { from, to, bytes: 1 << 28 }).collect();
    let flows: Vec<_> = fabric.routes(&demands).into_iter().map(|route| route.flow).collect();
    shares(&flows).iter().map(|share| (share.rate / 1e6).round() / 1e3).collect()
}

#[test]
fn shared_resources_bind_those_that_cross_their_border() {
    let fabric = with(
        "[[shared]]\nname = \"port\"\nper = \"host\"\ndirection = \"each\"\npath = \"inter_node\"\nrate = \"1.5GB/s\"\n\
         [[shared]]\nname = \"bridge\"\nper = \"socket\"\ndirection = \"out\"\npath = \"intra_node\"\nrate = \"6GB/s\"\n\
         [[shared]]\nname = \"bus\"\nper = \"host\"\ndirection = \"within\"\nrate = \"30GB/s\"\n",
    );
    // One alone is bound by the narrowest that it crosses, and that is its truth.
    assert_eq!(rates(&fabric, &[(0, 2)]), [6.0]);
    assert_eq!((fabric.truth(0, 2).rate, fabric.truth(0, 1).rate), (6e9, 8e9));
    // Out of host a: two share 1.5; back is another resource.
    assert_eq!(rates(&fabric, &[(0, 4), (1, 5), (6, 2)]), [0.75, 0.75, 1.0]);
    // The bridge out of socket 0 of a, not the one out of socket 1, nor host b's.
    assert_eq!(rates(&fabric, &[(0, 2), (1, 3), (2, 0), (4, 6)]), [3.0, 3.0, 6.0, 6.0]);
    // Copies and messages of one host share its bus; the other host has its own.
    assert_eq!(rates(&fabric, &[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]), [7.5, 7.5, 7.5, 7.5, 10.0]);
    let bound = fabric.can_bind(&[(0, 4), (1, 5)]).unwrap();
    assert_eq!(fabric.resource(bound), Some(Resource { name: "port out of a".into(), kind: ResourceKind::Fixed, capacity: 1.5e9 }));
    let bound = fabric.can_bind(&[(0, 6), (6, 1), (5, 2)]).unwrap();
    assert_eq!(fabric.resource(bound).unwrap().name, "port out of b");
    let bound = fabric.can_bind(&[(2, 1), (3, 0)]).unwrap();
    assert_eq!(fabric.resource(bound).unwrap().name, "bridge out of socket 1 of a");
    assert_eq!(fabric.can_bind(&[(0, 2), (2, 0), (4, 6), (0, 4), (4, 0)]), None);
}

#[test]
fn a_half_duplex_link_serves_both_ways_together() {
    let fabric = with("[[shared]]\nname = \"radio\"\nper = \"host\"\ndirection = \"both\"\npath = \"inter_node\"\nrate = \"1GB/s\"\n");
    assert_eq!(rates(&fabric, &[(0, 4)]), [1.0]);
    assert_eq!(rates(&fabric, &[(0, 4), (5, 1)]), [0.5, 0.5]);
    assert_eq!(fabric.resource(fabric.can_bind(&[(0, 4), (5, 1)]).unwrap()).unwrap().name, "radio of b");
}

#[test]
fn trunks_join_groups_of_hosts_with_a_rate_each_way() {
    let text = PLAIN.replace("names = [\"a\", \"b\"]\nranks = 4", "count = 4\nranks = 2").replace("rate = \"1GB/s\"", "rate = \"50MB/s\"");
    let text = format!("{text}\n[[trunk]]\nname = \"trunk\"\nfrom = \"0-1\"\nto = \"2-3\"\nrate = \"75MB/s\"\nback = \"400Mbit/s\"\n");
    let fabric = Fabric::parse(&text, "trunk").unwrap();
    // Ranks 0-3 on the near side, 4-7 on the far one.
    assert_eq!(rates(&fabric, &[(0, 4), (2, 6), (0, 2)]), [0.038, 0.038, 0.05]);
    assert_eq!(rates(&fabric, &[(4, 0), (6, 2), (4, 6)]), [0.025, 0.025, 0.05]);
    let bound = fabric.can_bind(&[(4, 0), (6, 2)]).unwrap();
    assert_eq!(fabric.resource(bound), Some(Resource { name: "trunk (back)".into(), kind: ResourceKind::Fixed, capacity: 5e7 }));
    assert_eq!(fabric.can_bind(&[(0, 4), (4, 0), (2, 3), (6, 7)]), None);
    let bound = fabric.can_bind(&[(0, 4), (2, 6)]).unwrap();
    assert_eq!(fabric.resource(bound).unwrap().name, "trunk");
}

#[test]
fn a_time_shared_endpoint_gets_its_concurrency_by_width() {
    let fabric = with(
        "[[shared]]\nname = \"receive engine\"\nper = \"rank\"\ndirection = \"in\"\npath = \"inter_node\"\nconcurrency = { 2 = 2, 4 = 1.0 }\n",
    );
    let fan = |width: usize| rates(&fabric, &(0..width).map(|sender| (sender, 7)).collect::<Vec<_>>()).iter().sum::<f64>();
    // Alone its own rate; two as if apart; three on the line between; four in turns.
    assert_eq!((fan(1), fan(2)), (1.0, 2.0));
    assert!((fan(3) - 1.5).abs() < 1e-9 && (fan(4) - 1.0).abs() < 1e-9);
    assert_eq!(fabric.can_bind(&[(0, 7), (1, 7)]), None);
    let bound = fabric.can_bind(&[(0, 7), (1, 7), (2, 7)]).unwrap();
    assert_eq!(
        fabric.resource(bound),
        Some(Resource { name: "receive engine into rank 7".into(), kind: ResourceKind::TimeShared, capacity: 2.0 })
    );
    // A collapse: four together are slower than one.
    let fabric = with("[[shared]]\nname = \"nic\"\nper = \"host\"\ndirection = \"in\"\nconcurrency = 0.5\n");
    assert_eq!(rates(&fabric, &[(0, 4)]), [1.0]);
    assert_eq!(rates(&fabric, &[(0, 4), (1, 5)]), [0.25, 0.25]);
}

#[test]
fn both_ways_on_one_class_cost_the_duplex_ratio() {
    let fabric = with("duplex = 0.5\n");
    assert_eq!(rates(&fabric, &[(0, 4), (4, 0), (1, 5)]), [0.5, 0.5, 1.0]);
    // A relay: every rank both receives and sends.
    assert_eq!(rates(&fabric, &[(0, 4), (4, 1), (1, 0)]), [0.5, 0.5, 8.0]);
    let bound = fabric.can_bind(&[(0, 4), (4, 0)]).unwrap();
    assert_eq!(
        fabric.resource(bound),
        Some(Resource { name: "inter_node both ways at rank 4".into(), kind: ResourceKind::Duplex, capacity: 0.5 })
    );
    assert_eq!(fabric.can_bind(&[(0, 4), (1, 0)]), None);
}

#[test]
fn one_pair_has_one_link() {
    let fabric = with("");
    assert_eq!(rates(&fabric, &[(0, 4), (0, 4)]), [0.5, 0.5]);
    let bound = fabric.can_bind(&[(0, 4), (0, 4)]).unwrap();
    assert_eq!(fabric.resource(bound), Some(Resource { name: "link 0 to 4".into(), kind: ResourceKind::Pair, capacity: 1e9 }));
}

#[test]
fn every_resource_on_a_way_can_be_named() {
    for name in Fabric::names() {
        let fabric = Fabric::shipped(name).unwrap().unwrap();
        let world = fabric.world();
        for (from, to) in [(0, 0), (0, 1), (0, world - 1), (world - 1, 0), (world / 2, 3)] {
            for used in fabric.route(from, to, 1 << 20).flow.uses {
                let resource = fabric.resource(used.resource).unwrap();
                if resource.kind == ResourceKind::Fixed {
                    assert!((used.weight * resource.capacity - 1.0).abs() < 1e-12, "{name}: {resource:?}");
                }
            }
        }
        let beyond = fabric.numbering.id(super::super::Meaning::Pair { from: world - 1, to: world - 1 });
        assert!(fabric.resource(beyond).is_some());
        assert_eq!(fabric.resource(super::super::ResourceId(beyond.0 + 1)), None);
    }
}

#[test]
fn faults_are_found_where_they_were_put() {
    let fabric = with(
        "[[fault]]\nkind = \"slow\"\nfrom = \"4-7\"\nfactor = 0.25\n\
         [[fault]]\nkind = \"flaky\"\nfrom = 0\nto = 5\nprobability = 0.1\nfactor = 0.5\n\
         [[fault]]\nkind = \"dead\"\nfrom = 1\nto = \"2-3\"\n\
         [[fault]]\nkind = \"hang\"\nrank = 6\nafter = 3\n",
    );
    let rate = |from, to| fabric.truth(from, to).rate;
    assert_eq!((rate(4, 0), rate(0, 4), rate(7, 6), rate(4, 4)), (0.25e9, 1e9, 2e9, 10e9));
    assert_eq!(fabric.link_fault(0, 5).flaky, Some((0.1, 0.5)));
    assert!(fabric.link_fault(1, 3).dead && !fabric.link_fault(3, 1).dead);
    assert_eq!((fabric.hangs(6), fabric.hangs(5)), (Some(3), None));
    let dead = fabric.route(1, 2, 1 << 20);
    let end = completions(&[Transfer { flow: dead.flow, start: 0.0, alpha: dead.alpha, bytes: 1.0 }]);
    assert_eq!(end, [f64::INFINITY]);
    assert_eq!(Fabric::parse("[hosts]\nranks = 0", "x").unwrap_err().line, 1);
}

#[test]
fn racks_and_rails_tell_the_ways_between_hosts_apart() {
    let text = PLAIN.replace("names = [\"a\", \"b\"]", "count = 4\nracks = [\"0,2\", \"1,3\"]\nnics = 2");
    let text =
        format!("{text}\n[[shared]]\nname = \"leaf\"\nper = \"rail\"\ndirection = \"each\"\npath = \"inter_node\"\nrate = \"1.5GB/s\"\n");
    let fabric = Fabric::parse(&text, "racks").unwrap();
    // Ranks 0-3 on node0, 8-11 on node2 are in rack 0; the first two ranks of a host have NIC 0.
    assert_eq!((fabric.class(0, 8), fabric.class(0, 10), fabric.class(0, 4)), (Class::SameRail, Class::SameRack, Class::CrossRack));
    assert_eq!(rates(&fabric, &[(0, 8), (1, 9)]), [1.0, 1.0]);
    assert_eq!(rates(&fabric, &[(0, 10), (1, 4)]), [0.75, 0.75]);
    assert_eq!(fabric.resource(fabric.can_bind(&[(0, 10), (1, 4)]).unwrap()).unwrap().name, "leaf out of rail 0 of rack 0");
}

/// The text with `old` replaced, which must be there once.
fn wrong(old: &str, new: &str) -> String {
    assert_eq!(PLAIN.matches(old).count(), 1, "{old}");
    PLAIN.replace(old, new)
}

#[test]
fn what_is_wrong_is_told_with_line_field_value_and_what_was_expected() {
    let shared = "\n[[shared]]\nname = \"x\"\nper = \"host\"\ndirection = \"each\"\n";
    let fault = "\n[[fault]]\nkind = \"slow\"\nfrom = 1\n";
    let more = |text: &str| format!("{PLAIN}{text}");
    let hardware = "\n[hardware]\ndevice = \"GPU\"\npcie = \"Gen4 x16\"\n";
    let trunk = "\n[[trunk]]\nname = \"t\"\nrate = \"1GB/s\"\n";
    let cases: Vec<(String, usize, &str, &str)> = vec![
        (wrong("seed = 5", "seed = "), 2, "", "value"),
        (wrong("seed = 5", "seed = \"five\""), 2, "seed", "expected u64"),
        (wrong("seed = 5", "sed = 5"), 2, "sed", "unknown field `sed`"),
        (wrong("ranks = 4", "ranks = 0"), 6, "hosts.ranks", "0 is not 1 to 1024 ranks"),
        (wrong("ranks = 4", "ranks = -4"), 6, "hosts.ranks", "-4"),
        (wrong("names = [\"a\", \"b\"]", "names = [\"a\", \"a\"]"), 5, "hosts.names", "distinct"),
        (wrong("names = [\"a\", \"b\"]", "names = [\"a\", \"b\"]\ncount = 3"), 6, "hosts.count", "3 is not the number of names, 2"),
        (wrong("names = [\"a\", \"b\"]\n", ""), 4, "hosts", "`count` or `names`"),
        (wrong("names = [\"a\", \"b\"]", "count = 99999999"), 5, "hosts.count", "at most 65536"),
        (wrong("sockets = 2", "sockets = 5"), 7, "hosts.sockets", "5 is not 1 to 4 groups"),
        (wrong("sockets = 2", "sockets = true"), 7, "hosts.sockets", "expected a number of equal groups"),
        (wrong("sockets = 2", "sockets = [\"0-1\", \"1-3\"]"), 7, "hosts.sockets", "\"1-3\" is not a set of ranks of a host 0 to 3"),
        (wrong("sockets = 2", "sockets = [\"0-1\", \"3\"]"), 7, "hosts.sockets", "2 is in no group"),
        (wrong("memory = \"2GiB\"", "memory = \"2GB\""), 8, "hosts.memory", "\"2GB\" is not a size"),
        (wrong("memory = \"2GiB\"\n", ""), 4, "hosts", "missing field `memory`"),
        (wrong("rate = \"8GB/s\"", "rate = \"-8GB/s\""), 17, "path.intra_node.rate", "\"-8GB/s\" is not a rate above zero"),
        (wrong("rate = \"8GB/s\"", "rate = 8"), 17, "path.intra_node.rate", "invalid type: integer `8`"),
        (
            wrong("rate = \"8GB/s\"", "rate = \"8GB/s\"\nspread = [\"9GB/s\", \"10GB/s\"]"),
            18,
            "path.intra_node.spread",
            "around the rate, 8.00",
        ),
        (wrong("rate = \"8GB/s\"", "rate = \"8GB/s\"\nduplex = 1.5"), 18, "path.intra_node.duplex", "1.5 is not"),
        (wrong("alpha = \"20us\"", "alpha = \"20\""), 20, "path.inter_node.alpha", "\"20\" is not a time"),
        (wrong("[path.inter_node]", "[path.inter_nod]"), 19, "path.inter_nod", "unknown field `inter_nod`"),
        (wrong("[path.inter_node]", "[path.same_switch]"), 19, "path.same_switch", "no pair of ranks goes this way"),
        (wrong("[path.inter_node]", "[path.cross_socket]"), 4, "hosts", "[path.same_rack] or [path.inter_node]"),
        (
            more(
                "breakpoints = [\n  { below = \"8KiB\", alpha = \"1us\", rate = \"1GB/s\" },\n  { below = \"4KiB\", alpha = \"1us\", rate = \"1GB/s\" },\n]\n",
            ),
            24,
            "path.inter_node.breakpoints[1].below",
            "\"4KiB\" is not above the one before",
        ),
        (more("\n[matrix]\nunit = \"GB\"\nrows = []\n"), 24, "matrix.unit", "\"GB\" is not a unit"),
        (more("\n[matrix]\nunit = \"GB/s\"\nat = \"soon\"\nrows = []\n"), 26, "matrix.rows", "0 rows"),
        (more("\n[matrix]\nunit = \"GB/s\"\nrows = [[0, 1], [1, 0]]\n"), 25, "matrix.rows", "2 rows for 8 ranks"),
        (more("\n[[pair]]\nfrom = 0\nto = 8\nrate = \"1GB/s\"\n"), 25, "pair[0].to", "8 is not a rank of this fabric, 0 to 7"),
        (
            more("\n[[pair]]\nfrom = 0\nto = 1\nrate = \"1GB/s\"\n[[pair]]\nfrom = 0\nto = 1\nrate = \"2GB/s\"\n"),
            28,
            "pair[1].from",
            "0 to 1 was told before",
        ),
        (more(shared), 23, "shared[0]", "either `rate` or `concurrency`"),
        (
            more(&format!("{shared}rate = \"1GB/s\"\npath = \"inter\"\n")),
            28,
            "shared[0].path",
            "\"inter\" is not a path class: local, intra_node",
        ),
        (more(&format!("{shared}concurrency = 0\n")), 27, "shared[0].concurrency", "0 is not a concurrency above 0"),
        (more(&format!("{shared}concurrency = {{ 1 = 2 }}\n")), 27, "shared[0].concurrency", "\"1\" is not a width of 2 or more"),
        (more(&format!("{shared}concurrency = \"two\"\n")), 27, "shared[0].concurrency", "expected a number such as 1.02"),
        (more(&shared.replace("host", "plug")), 25, "shared[0].per", "unknown variant `plug`"),
        (more(&shared.replace("host", "nic")), 25, "shared[0].per", "which `nics` there are"),
        (more(&shared.replace("host", "fabric")), 26, "shared[0].direction", "use \"within\""),
        (more(&format!("{trunk}from = 0\nto = 2\n")), 27, "trunk[0].to", "2 is not a set of hosts 0 to 1"),
        (more(&format!("{trunk}from = 0\nto = \"0-1\"\n")), 27, "trunk[0].to", "host 0 is on both sides"),
        (more("\n[noise]\nkind = \"pink\"\ncv = 0.1\n"), 24, "noise.kind", "unknown variant `pink`"),
        (more("\n[noise]\nkind = \"normal\"\ncv = 3\n"), 25, "noise.cv", "3 is not a coefficient of variation"),
        (more(fault), 23, "fault[0]", "`factor` is missing"),
        (more(&format!("{fault}factor = 2.0\n")), 26, "fault[0].factor", "2 is not a factor"),
        (more(&format!("{fault}factor = 0.5\nto = \"7-9\"\n")), 27, "fault[0].to", "\"7-9\" is not a set of ranks 0 to 7"),
        (more(&format!("{fault}factor = 0.5\nrank = 2\n")), 27, "fault[0].rank", "`rank` has no meaning for this kind"),
        (more("\n[[fault]]\nkind = \"hang\"\n"), 23, "fault[0]", "`rank` is missing"),
        (more("\n[[fault]]\nkind = \"narrow\"\nrank = 1\nlanes = 8\n"), 26, "fault[0].lanes", "no [hardware] table"),
        (more(&format!("{hardware}[[fault]]\nkind = \"narrow\"\nrank = 1\nlanes = 16\n")), 29, "fault[0].lanes", "fewer than the 16 lanes"),
        (more(&format!("{hardware}[[fault]]\nkind = \"narrow\"\nlanes = 8\n")), 26, "fault[0]", "`rank` is missing"),
        (more(&format!("{hardware}[[fault]]\nkind = \"narrow\"\nrank = 1\n")), 26, "fault[0]", "`lanes` is missing"),
        (more(&hardware.replace("Gen4", "Gen9")), 25, "hardware.pcie", "\"Gen9 x16\" is no PCIe link"),
        (more(&format!("{hardware}uplink = \"Gen4 x8\"\n")), 26, "hardware.uplink", "no `switches`"),
        (more(&format!("{hardware}nic = \"400Gbit/s\"\n")), 26, "hardware.nic", "no `nics`"),
        (more(&format!("{hardware}nvlink = \"25GB/s\"\n")), 26, "hardware.nvlink", "`nvlinks` is missing"),
        (more(&format!("{hardware}nvlinks = 18\n")), 23, "hardware", "`nvlink`, the rate"),
        (more(&format!("{hardware}nvlinks = 1800\nnvlink = \"25GB/s\"\n")), 26, "hardware.nvlinks", "at most 256"),
    ];
    for (text, line, field, problem) in cases {
        let error = Fabric::parse(&text, "bad.toml").err().unwrap_or_else(|| panic!("accepted: {problem}\n{text}"));
        assert_eq!((error.line, error.field.as_str()), (line, field), "{error}\n{text}");
        assert!(error.problem.contains(problem), "{problem:?} not in {error}");
    }
    let error = Fabric::parse(&wrong("rate = \"8GB/s\"", "rate = \"-8GB/s\""), "bad.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "bad.toml, line 17, path.intra_node.rate: \"-8GB/s\" is not a rate above zero such as 53.8GB/s, 900MB/s or 200Gbit/s"
    );
}

#[test]
fn a_matrix_with_a_wrong_cell_names_the_pair() {
    let text = PLAIN
        .replace("names = [\"a\", \"b\"]\nranks = 4\nsockets = 2", "count = 1\nranks = 2")
        .replace("[path.inter_node]\nalpha = \"20us\"\nrate = \"1GB/s\"\n", "");
    let parse = |rows: &str| Fabric::parse(&format!("{text}[matrix]\nunit = \"Gbit/s\"\nrows = [\n{rows}\n]\n"), "m");
    assert_eq!(parse("[0, 80],\n[8, 0]").unwrap().truth(0, 1).rate, 10e9);
    for (rows, line, field, problem) in [
        ("[0, 80],\n[0, 0]", 22, "matrix.rows[1][0]", "0 from 1 to 0 is not a rate above 0"),
        ("[0, 80],\n[8, 9]", 22, "matrix.rows[1][1]", "9 from 1 to 1 is not 0, as the diagonal is"),
        ("[0, 80],\n[8]", 22, "matrix.rows[1]", "1 numbers for 2 ranks"),
        ("[0, nan],\n[8, 0]", 21, "matrix.rows[0][1]", "NaN from 0 to 1"),
    ] {
        let error = parse(rows).unwrap_err();
        assert_eq!((error.line, error.field.as_str()), (line, field), "{error}");
        assert!(error.problem.contains(problem), "{error}");
    }
}

#[test]
fn bound_by_its_own_link_means_the_cap() {
    let fabric = with("");
    assert_eq!(shares(&[fabric.route(0, 4, 1).flow])[0].bound, Bound::Cap);
}
