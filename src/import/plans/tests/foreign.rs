//! Other projects' files: small ones of our own make, with the fields that their sources write.

use std::collections::BTreeSet;

use super::super::*;
use crate::plan::{Batch, Place, Transfers};

/// A (4, 6) bf16 parameter: two training ranks (2, 3) hold rows, two inference ranks (0, 1) get columns.
pub(super) const AWEX: &str = r#"[
 {"send_rank": 2, "send_shard_meta": {"tp_rank": 0, "pp_rank": 0, "global_rank": 0, "world_size": 2, "name": "w", "shape": [2, 6], "numel": 12, "dtype": "torch.bfloat16", "global_offset": [0, 0], "sharding_type": 1, "num_shards": 2, "sharding_dim": 0},
  "send_offset": [0, 0], "recv_rank": 0, "recv_shard_meta": {"name": "w", "shape": [4, 3], "numel": 12, "dtype": "torch.bfloat16", "global_offset": [0, 0]},
  "recv_offset": [0, 0], "overlap_shape": [2, 3], "train_slices": ["slice(0, 2, None)", "slice(0, 3, None)"], "inf_slices": []},
 {"send_rank": 2, "send_shard_meta": {"name": "w", "shape": [2, 6], "dtype": "torch.bfloat16", "global_offset": [0, 0]},
  "send_offset": [0, 3], "recv_rank": 1, "recv_shard_meta": {"name": "w", "shape": [4, 3], "dtype": "torch.bfloat16", "global_offset": [0, 3]},
  "recv_offset": [0, 0], "overlap_shape": [2, 3]},
 {"send_rank": 3, "send_shard_meta": {"name": "w", "shape": [2, 6], "dtype": "torch.bfloat16", "global_offset": [2, 0]},
  "send_offset": [0, 3], "recv_rank": 1, "recv_shard_meta": {"name": "w", "shape": [4, 3], "dtype": "torch.bfloat16", "global_offset": [0, 3]},
  "recv_offset": [2, 0], "overlap_shape": [2, 3]}]"#;

fn batch(content: &str) -> Batch {
    match text(content, "", &Given::default()) {
        Ok(Transfers::Batch(batch)) => batch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_awex_dump_becomes_a_plan_between_the_ranks_of_its_group() {
    let whole = batch(AWEX);
    assert_eq!((whole.parameters.len(), whole.parameters[0].element_size), (1, 2));
    let plan = &whole.parameters[0].plan;
    assert_eq!(plan.logical_shape, [4, 6]);
    let sides: Vec<_> = plan.segments.iter().map(|segment| (segment.source.clone(), segment.target.clone())).collect();
    let wide = |rank, at| Place(rank, at, vec![6, 1]);
    let slim = |rank, at| Place(rank, at, vec![3, 1]);
    assert_eq!(sides, [(wide(2, 0), slim(0, 0)), (wide(2, 3), slim(1, 0)), (wide(3, 3), slim(1, 6))]);
    let traffic = Transfers::Batch(whole).traffic().unwrap();
    assert_eq!(traffic.flows.iter().map(|flow| (flow.from, flow.to, flow.bytes)).collect::<Vec<_>>(), [(2, 0, 12), (2, 1, 12), (3, 1, 12)]);
}

#[test]
fn a_local_awex_dump_holds_the_operations_of_one_rank_by_its_peer() {
    let operations: Vec<serde_json::Value> = serde_json::from_str(AWEX).unwrap();
    let local = serde_json::json!({"2": [operations[1]], "3": [operations[2]]}).to_string();
    let traffic = Transfers::Batch(batch(&local)).traffic().unwrap();
    assert_eq!(traffic.flows.iter().map(|flow| (flow.from, flow.to)).collect::<Vec<_>>(), [(2, 1), (3, 1)]);
}

#[test]
fn faults_of_awex_dumps_are_told_with_the_operation() {
    let cases = [
        (
            AWEX.replacen("\"send_offset\": [0, 3]", "\"send_offset\": [0, 4]", 1),
            "operation 1 (w): send: 3 elements from 4 on along axis 1 of a shard that has 6",
        ),
        (
            AWEX.replacen("\"send_offset\": [0, 3]", "\"send_offset\": [0, 2]", 1),
            "operation 1 (w): sender and receiver mean different elements along axis 1",
        ),
        (
            AWEX.replacen("[0, 3], \"recv_rank\"", "[3], \"recv_rank\"", 1),
            "operation 1 (w): send: [2, 2, 1] axes of shape, global_offset and send_offset: expected 2 each",
        ),
        (AWEX.replacen("torch.bfloat16", "torch.bits16", 1), "operation 0 (w): torch.bits16 is sent, torch.bfloat16 received"),
        (AWEX.replace("torch.bfloat16", "torch.bits16"), "operation 0 (w): dtype \"torch.bits16\": expected a torch type"),
        (AWEX.replacen("\"name\": \"w\"", "\"name\": \"v\"", 1), "operation 0 (v): it is received as \"w\""),
        (
            AWEX.replacen("\"send_rank\": 3", "\"send_rank\": 2", 1),
            "operation 2 (w): rank 2 has another shard of it in an earlier operation",
        ),
        (AWEX.replacen("\"send_rank\": 3", "\"send_rank\": -3", 1), "entry 2, send_rank: invalid value: integer `-3`, expected usize"),
        (
            AWEX.replacen("\"overlap_shape\": [2, 3]}]", "\"overlap_shape\": [0, 3]}]", 1),
            "operation 2 (w): send: 0 elements from 0 on along axis 0",
        ),
        (AWEX[..900].to_owned(), "the text ends in the middle"),
    ];
    for (content, expected) in cases {
        let said = text(&content, "", &Given::default()).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

/// Two tensors over tp 2 x dp 2; a participant may hold several fragments of a tensor.
pub(super) const MOONCAKE: &str = r#"{"parts": [
 {"participant_id": "p0", "rank": {"dp": 0, "tp": 0, "pp": 0, "ep": 0}, "fragments": [
  {"placement_fragment_id": "f0", "tensor_id": "w", "global_offset": [0, 0], "local_shape": [4, 2], "nbytes": 32, "rank": {"dp": 0, "tp": 0, "pp": 0, "ep": 0}, "aliases": []}]},
 {"participant_id": "p1", "rank": {"dp": 0, "tp": 1, "pp": 0, "ep": 0}, "fragments": [
  {"placement_fragment_id": "f1", "tensor_id": "w", "global_offset": [0, 2], "local_shape": [4, 2], "nbytes": 32, "rank": {"dp": 0, "tp": 1, "pp": 0, "ep": 0}, "aliases": []},
  {"placement_fragment_id": "f2", "tensor_id": "b", "global_offset": [0], "local_shape": [3], "nbytes": 6, "rank": {"dp": 0, "tp": 1, "pp": 0, "ep": 0}, "aliases": []}]},
 {"participant_id": "p2", "rank": {"dp": 1, "tp": 0, "pp": 0, "ep": 0}, "fragments": [
  {"placement_fragment_id": "f3", "tensor_id": "w", "global_offset": [0, 0], "local_shape": [2, 4], "nbytes": 32, "rank": {"dp": 1, "tp": 0, "pp": 0, "ep": 0}, "aliases": []},
  {"placement_fragment_id": "f4", "tensor_id": "w", "global_offset": [3, 0], "local_shape": [1, 4], "nbytes": 16, "rank": {"dp": 1, "tp": 0, "pp": 0, "ep": 0}, "aliases": []}]}],
 "placement_id": "x", "placement_set_id": "y", "resource_id": "m", "resource_kind": "model_weight", "revision": "1", "weight_generation": 0,
 "tensors": [
  {"tensor_id": "b", "global_shape": [3], "dtype": "bfloat16", "itemsize": 2, "shard_dims": [], "layout_fingerprint": "z", "parallel_axes": [], "layer_id": null, "expert_id": null},
  {"tensor_id": "w", "global_shape": [4, 4], "dtype": "float32", "itemsize": 4, "shard_dims": [1], "layout_fingerprint": "z", "parallel_axes": [], "layer_id": 0, "expert_id": null}],
 "topology": {"tp_size": 2, "pp_size": 1, "ep_size": 1, "dp_size": 2, "topology_id": "t", "participants": [
  {"participant_id": "p0", "rank": {"dp": 0, "tp": 0, "pp": 0, "ep": 0}}, {"participant_id": "p1", "rank": {"dp": 0, "tp": 1, "pp": 0, "ep": 0}},
  {"participant_id": "p2", "rank": {"dp": 1, "tp": 0, "pp": 0, "ep": 0}}]}}"#;

#[test]
fn a_mooncake_placement_becomes_a_layout_whose_pieces_name_all_holders() {
    let read = layout(MOONCAKE).unwrap();
    assert_eq!(read.locations, ["p0", "p1", "p2"]);
    assert_eq!(read.element_sizes.values().copied().collect::<Vec<_>>(), [2, 4]);
    let map = &read.maps["w"];
    assert_eq!(map.shape, [4, 4]);
    // p2 holds rows 0, 1 and 3, one behind the other.
    assert_eq!(map.shards[&2].shape, [12]);
    let mut held = BTreeSet::new();
    for piece in &map.shards[&2].pieces {
        for (row, column) in (0..piece.shape[0]).flat_map(|row| (0..piece.shape[1]).map(move |column| (row, column))) {
            let (element, address) = (piece.source.offset + row * 4 + column, piece.dest.offset + row * 4 + column);
            assert_eq!(address, if element < 8 { element } else { element - 4 });
            let other = i64::from(element % 4 >= 2);
            assert_eq!(piece.holders, BTreeSet::from([other, 2]));
            held.insert(element);
        }
    }
    assert_eq!(held, (0..8).chain(12..16).collect());
    assert!(text(MOONCAKE, "", &Given::default()).unwrap_err().to_string().contains("`toposcope plan build` makes a plan of two"));
}

#[test]
fn faults_of_mooncake_placements_are_told_with_part_and_fragment() {
    let cases = [
        (
            MOONCAKE.replacen("\"nbytes\": 32", "\"nbytes\": 30", 1),
            "part 0 (p0), fragment 0 (w): nbytes is 30: expected 8 elements of 4 bytes",
        ),
        (
            MOONCAKE.replacen("[0, 2], \"local", "[0, 3], \"local", 1),
            "part 1 (p1), fragment 0 (w): 2 elements from 3 on along axis 1 of a tensor that has 4",
        ),
        (
            MOONCAKE.replacen("\"tensor_id\": \"b\", \"global_offset\"", "\"tensor_id\": \"c\", \"global_offset\"", 1),
            "part 1 (p1), fragment 1 (c): its tensor_id is none of the tensors",
        ),
        (
            MOONCAKE.replacen(
                "\"participant_id\": \"p1\", \"rank\": {\"dp\": 0, \"tp\": 1, \"pp\": 0, \"ep\": 0}, \"frag",
                "\"participant_id\": \"p9\", \"frag",
                1,
            ),
            "part 1 (p9): its participant_id is none of the topology's",
        ),
        (
            MOONCAKE.replacen("[4, 4]", "[4, 4, 1]", 1),
            "part 0 (p0), fragment 0 (w): 2 and 2 axes of local_shape and global_offset: expected 3",
        ),
        (MOONCAKE.replacen("\"itemsize\": 2", "\"itemsize\": 0", 1), "tensor 0 (b): itemsize is 0"),
        (
            MOONCAKE.replacen("\"global_offset\": [0, 0]", "\"global_offset\": [0, -1]", 1),
            "part 0, fragment 0, global_offset[1]: invalid value: integer `-1`",
        ),
        (MOONCAKE.replacen("[3], \"dtype\"", "[4294967296, 4294967296], \"dtype\"", 1), "tensor 0 (b): global_shape has more elements"),
    ];
    for (content, expected) in cases {
        let said = layout(&content).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn a_file_that_is_no_layout_is_told_as_what_it_is() {
    let said = |text: &str| layout(text).unwrap_err().to_string();
    assert!(said("src,dst,bytes\n0,1,8\n").starts_with("a flow list: expected who holds what: an affine map"));
    assert!(said("").starts_with("the file is empty: expected who holds what"));
    assert!(said("[1]").contains("expected who holds what"));
}
