#!/bin/sh
# Check toposcope on a node with several NVIDIA GPUs: contrib/gpu_node.sh [FOLDER]
#
# Everything that was run and printed goes into FOLDER (default: gpu-check-HOST-TIME); bring all of it home. A line for each step:
# PASS, FAIL or SKIP, with the reason; exit code 1 if one failed, 2 if nothing could be started. Without GPUs every step that needs them
# is skipped. Named by the environment, as for one_gpu.sh: TOPOSCOPE, TOPOSCOPE_MPIRUN, TOPOSCOPE_STEP_LIMIT (600), TOPOSCOPE_CHECK_LIMIT
# (3600), TOPOSCOPE_STEP_MIB and TOPOSCOPE_STEP_REPEATS.
#
#   step             what must come out
#   environment, doctor, discovery, local_copies, host_to_device, device_to_host   as in one_gpu.sh
#   peer_copies      copies between GPUs of one process: 0.95 of nvbandwidth's device_to_device_memcpy_write_ce or better
#   cuda_ipc_pull, cuda_ipc_push     a process a GPU, all pairs and fans: every payload right
#   nccl             the same by NCCL, all patterns
#   nccl_put         the same by one-sided puts, where the loaded NCCL has them
#   scenarios        all that one host can run: tables of all methods; every byte right
#   weight_sync      from the first half of the GPUs to the second: every engine has every byte
#   host_scenarios   on host memory
set -u
TOPOSCOPE_STEP_LIMIT=${TOPOSCOPE_STEP_LIMIT:-600}
TOPOSCOPE_CHECK_LIMIT=${TOPOSCOPE_CHECK_LIMIT:-3600}
# shellcheck source-path=SCRIPTDIR source=gpu_steps.sh
. "$(dirname "$0")/gpu_steps.sh"

step_peer_copies() {
    step=peer_copies
    needs_several || return 0
    if sweep peer_copies -- --engine threads --ranks "$gpus" --memory cuda --gpus "$all" --patterns peer --sizes "${mib}MiB" \
        --repeats "$repeats" --isolated; then
        theirs=$(nvbandwidth_of device_to_device_memcpy_write_ce)
        if [ -n "$theirs" ]; then
            compare "$(rate peer_copies peer)" "$theirs" "nvbandwidth device_to_device_memcpy_write_ce"
        else
            pass "$(rate peer_copies peer) GB/s, median over pairs (no nvbandwidth to compare with)"
        fi
    else
        fail "$(why peer_copies)"
    fi
}

# usage: needs_several: false, and told, with less than two GPUs
needs_several() {
    needs_gpu || return 1
    [ "$gpus" -gt 1 ] && return 0
    skip "one GPU only: contrib/one_gpu.sh"
    return 1
}

# usage: several STEP_FUNCTION NAME ...
several() {
    step=$2
    needs_several || return 0
    "$@"
}

begin "${1:-}"
step_environment
step_doctor
all=$(awk -v n="$gpus" 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", (i ? "," : ""), i }')
half=$((gpus / 2))
sets="0-$((half - 1))/$half-$((gpus - 1))"
step_discovery
step_local_copies
step_host_copies
step_peer_copies
# Methods that moved what they should: an older NCCL has no puts, and need not be there.
methods=
for mover in cuda_ipc_pull cuda_ipc_push nccl nccl_put; do
    several step_mover $mover "$gpus" "$all" peer,duplex,fan_in,fan_out,relay
    [ $mover = nccl_put ] && continue # runs no plans
    grep -q "^PASS $mover:" "$out/steps.txt" && methods="$methods${methods:+,}$mover"
done
# usage: step_tables NAME WORDS: scenarios by those methods
step_tables() {
    step=$1
    needs_several || return 0
    if [ -n "$methods" ]; then
        step_scenarios "$1" "$gpus" "$all" "$methods" "$2 --bytes $((4 * mib))MiB"
    else
        skip "no method moved anything"
    fi
}
step_tables scenarios "one_host --sizes 4MiB,$((mib / 4))MiB"
# Two halves of this host in place of two hosts.
step_tables weight_sync "weight_sync incast staging across_hosts --hosts $sets --sizes $((mib / 4))MiB"
step_host_scenarios
finish
