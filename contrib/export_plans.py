#!/usr/bin/env python3
"""Write the transfer plans and endpoints of DeepSpeed's affine transfer as JSON that toposcope reads.

    from export_plans import export_batch, export_endpoints, export_plan

    export_plan(plan, "plan.json")                   # one TransferPlan
    export_endpoints(endpoints, "endpoints.json")    # one TransferEndpoints
    export_batch([(name, plan, tensor.element_size()), ...], endpoints, "batch.json", bytes_per_peer=budget.bytes_per_peer)

    toposcope plan schedule plan.json --endpoints endpoints.json --element-size 2
    toposcope plan schedule batch.json

A plan is any object with `segments` (each with source_rank, source_offset, source_strides, target_rank, target_offset,
target_strides and shape) and `logical_shape`; endpoints are any object with `source` and `target`, mappings of location and
process. Only the standard library is used; the reference itself is not imported. On one rank only: all hold the same plans.

As a program it converts what was pickled where the reference is installed (unpickle only what you wrote yourself):

    python3 export_plans.py batch.pickle batch.json

The pickle holds a dict: {"plans": [(name, plan, element_size), ...], "endpoints": endpoints, "bytes_per_peer": bytes or None}.
"""

import json
import operator
import pickle
import sys

PLAN_FORMAT = "toposcope.plan/1"


def _whole(value, what, least=None):
    """A whole number, of Python, NumPy or torch; anything else is an error that says where."""
    if isinstance(value, bool):
        raise ValueError(f"{what}: {value!r}: expected a whole number")
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{what}: {value!r}: expected a whole number") from None
    if least is not None and number < least:
        raise ValueError(f"{what}: {number}: expected {least} or more")
    return number


def _wholes(values, what, least=None):
    return [_whole(value, f"{what}[{at}]", least) for at, value in enumerate(values)]


def _side(segment, side, what):
    return [
        _whole(getattr(segment, f"{side}_rank"), f"{what}.{side}_rank"),
        _whole(getattr(segment, f"{side}_offset"), f"{what}.{side}_offset", 0),
        _wholes(getattr(segment, f"{side}_strides"), f"{what}.{side}_strides"),
    ]


def plan_document(plan, what="plan"):
    """A plan as the reference stores it."""
    segments = []
    for number, segment in enumerate(plan.segments):
        place = f"{what}.segments[{number}]"
        shape = _wholes(segment.shape, f"{place}.shape", 0)
        source, target = _side(segment, "source", place), _side(segment, "target", place)
        if not len(shape) == len(source[2]) == len(target[2]):
            raise ValueError(f"{place}: {len(shape)} axes, {len(source[2])} source and {len(target[2])} target strides")
        segments.append({"shape": shape, "source": source, "target": target})
    return {"logical_shape": _wholes(plan.logical_shape, f"{what}.logical_shape", 0), "segments": segments}


def endpoints_document(endpoints):
    """Which process holds which location."""
    document = {}
    for side in ("source", "target"):
        processes = getattr(endpoints, side)
        document[side] = {
            str(_whole(location, f"endpoints.{side}")): _whole(process, f"endpoints.{side}[{location}]", 0)
            for location, process in sorted(processes.items())
        }
    return document


def batch_document(plans, endpoints=None, bytes_per_peer=None):
    """Plans of one sync, as (name, plan, bytes of an element)."""
    parameters = []
    names = set()
    for name, plan, element_size in plans:
        if name in names:
            raise ValueError(f"plan {name!r} stands twice: expected one of each parameter")
        names.add(name)
        element_size = _whole(element_size, f"element size of {name!r}", 1)
        parameters.append({"name": name, "element_size": element_size, "plan": plan_document(plan, f"plan {name!r}")})
    document = {"format": PLAN_FORMAT, "parameters": parameters}
    if endpoints is not None:
        document["endpoints"] = endpoints_document(endpoints)
    if bytes_per_peer is not None:
        document["bytes_per_peer"] = _whole(bytes_per_peer, "bytes_per_peer", 1)
    return document


def _write(document, path):
    # Made whole first: a fault leaves no half a file.
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def export_plan(plan, path):
    _write(plan_document(plan), path)


def export_endpoints(endpoints, path):
    _write(endpoints_document(endpoints), path)


def export_batch(plans, endpoints, path, bytes_per_peer=None):
    _write(batch_document(plans, endpoints, bytes_per_peer), path)


def main(arguments):
    if len(arguments) != 2:
        print("usage: export_plans.py batch.pickle batch.json", file=sys.stderr)
        return 2
    with open(arguments[0], "rb") as file:
        batch = pickle.load(file)
    export_batch(batch["plans"], batch.get("endpoints"), arguments[1], batch.get("bytes_per_peer"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
