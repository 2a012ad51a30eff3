# shellcheck shell=sh
# Steps that contrib/one_gpu.sh and contrib/gpu_node.sh have in common; read by them, not started itself.
#
# Each step writes what it ran and what came of it into the folder $out, and ends in one line of $out/steps.txt and of standard output:
#
#     PASS name: what was seen
#     FAIL name: what was expected, and where to look
#     SKIP name: what is not there
#
# A step fails where something that is there does not do what it should; it is skipped where a tool or a device is absent.

# What a tool may take, and all of it, seconds; a hang becomes a failed step.
limit=${TOPOSCOPE_STEP_LIMIT:-120}
limit_of_all=${TOPOSCOPE_CHECK_LIMIT:-300}
# The large messages, MiB: so large on GPUs that their latency does not count.
mib=${TOPOSCOPE_STEP_MIB:-256}
# Timed repeats of everything.
repeats=${TOPOSCOPE_STEP_REPEATS:-6}
# Smallest share of another tool's figure that passes.
share=0.95

pass() { tell PASS "$1"; }
fail() { tell FAIL "$1"; failed=$((failed + 1)); }
skip() { tell SKIP "$1"; }
tell() { printf '%s %s: %s\n' "$1" "$step" "$2" | tee -a "$out/steps.txt"; }

have() { command -v "$1" >/dev/null 2>&1; }

# usage: begin [FOLDER]
begin() {
    out=${1:-gpu-check-$(hostname 2>/dev/null || uname -n)-$(date +%Y%m%d-%H%M%S)}
    if ! mkdir "$out" 2>/dev/null; then
        echo "$0: $out: cannot be made, or is there already; name another folder" >&2
        exit 2
    fi
    out=$(cd "$out" && pwd)
    failed=0
    # Read by the scripts that read this.
    # shellcheck disable=SC2034
    step=
    over=$(($(date +%s) + limit_of_all))
    : >"$out/steps.txt"
    here=$(cd "$(dirname "$0")/.." && pwd)
    program=${TOPOSCOPE:-}
    for built in "$here/target/release/toposcope" "$here/target/debug/toposcope"; do
        [ -z "$program" ] && [ -x "$built" ] && program=$built
    done
    [ -z "$program" ] && program=$(command -v toposcope || true)
    if [ -z "$program" ] || [ ! -x "$program" ]; then
        echo "$0: no toposcope; build it (MPICC=mpicc cargo build --release --features mpi), or name it with TOPOSCOPE=PATH" >&2
        exit 2
    fi
    # No session of these runs anywhere else.
    XDG_DATA_HOME=$out/data
    export XDG_DATA_HOME
}

# usage: ran NAME COMMAND...: run it with its output in $out/NAME.out and .err; its exit code
ran() {
    name=$1
    shift
    printf '%s\n' "$*" >"$out/$name.cmd"
    # Appended to: what outlives the command does not write over what is said of it here.
    : >"$out/$name.out"
    : >"$out/$name.err"
    left=$((over - $(date +%s)))
    if [ "$left" -le 0 ]; then
        echo "not started: the $limit_of_all s for all of it are over (TOPOSCOPE_CHECK_LIMIT)" >>"$out/$name.err"
        return 124
    fi
    [ "$left" -lt "$limit" ] || left=$limit
    if have timeout; then
        timeout -k 10 "$left" "$@" >>"$out/$name.out" 2>>"$out/$name.err" </dev/null
    else
        "$@" >>"$out/$name.out" 2>>"$out/$name.err" </dev/null
    fi
    code=$?
    # timeout's own codes: ended, or killed.
    case $code in 124 | 137) echo "not done within $left s" >>"$out/$name.err" ;; esac
    return $code
}

# What went wrong, in a line: the time that was up, what a sample was waived for, or what was complained of.
why() {
    text=$(grep -E '^not (done|started)' "$out/$1.err" | head -n 1)
    [ -z "$text" ] && [ -s "$out/$1.csv" ] && text=$(reason "$1")
    [ -z "$text" ] && text=$(grep -v '^[-[:space:]]*$' "$out/$1.err" | grep -i -E 'toposcope:|error|cannot|not ' | head -n 1)
    [ -z "$text" ] && text=$(grep '^!' "$out/$1.out" | head -n 1)
    [ -z "$text" ] && text=$(tail -n 1 "$out/$1.err")
    [ -z "$text" ] && text=$(tail -n 1 "$out/$1.out")
    printf '%s (see %s.cmd, %s.out and %s.err)' "${text:-no word}" "$1" "$1" "$1"
}

# Of one of doctor's checks, by its id: its state (ok, warn, absent or skipped), and what it says.
state() { check "$1" state; }
check() {
    tr -d '\n' <"$out/doctor.out" | tr '{' '\n' | grep "\"id\": \"$1\"" | sed "s/.*\"$2\": \"\([^\"]*\)\".*/\1/"
}

# usage: mpi RANKS: sets $launch to what stands before the program; fails without a launcher or a program with MPI
mpi() {
    launch=
    [ "$(state mpi)" = ok ] || { lacks="this toposcope was built without MPI (cargo build --release --features mpi)"; return 1; }
    for name in ${TOPOSCOPE_MPIRUN:-mpirun mpiexec}; do
        have "$name" || continue
        launch="$name -n $1"
        if "$name" --version 2>/dev/null | grep -q -E 'Open MPI|OpenRTE|PRRTE'; then
            # As root in a container, and with more ranks than cores.
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
            PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
            export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
            export PRTE_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT_CONFIRM
        fi
        return 0
    done
    lacks="no mpirun"
    return 1
}

# usage: sweep NAME [LAUNCHER..] -- ARGUMENTS: a sweep; its table in $out/NAME.csv. Fails where a sample is not good
sweep() {
    called=$1
    shift
    before=
    while [ "$1" != -- ]; do
        before="$before $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # words of a launcher
    ran "$called" $before "$program" sweep "$@" --session "$out/$called.session" --out "$out/$called.json"
    swept=$?
    # Of a sweep that did not measure all as asked, the table tells why.
    [ -d "$out/$called.session" ] || return 1
    ran "$called.export" "$program" export "$out/$called.session" --format csv --out "$out/$called.csv" || return 1
    [ "$swept" -eq 0 ] || return 1
    # Every repeat was timed, and its payload was right.
    bad=$(column "$called" status | grep -c -v '^ok$')
    [ "$(column "$called" status | wc -l)" -gt 0 ] && [ "$bad" -eq 0 ]
}

# usage: column NAME TITLE [PATTERN [BYTES]]: a column of a sweep's table, of the rows of a pattern, and of a size
column() {
    awk -F, -v title="$2" -v pattern="${3:-}" -v bytes="${4:-}" '
        NR == 1 { for (i = 1; i <= NF; i++) { sub(/\r$/, "", $i); at[$i] = i }; next }
        (pattern == "" || $at["pattern"] == pattern) && (bytes == "" || $at["bytes"] == bytes) { value = $at[title]; sub(/\r$/, "", value); print value }' "$out/$1.csv"
}

# usage: reason NAME: of a sweep's table, the first cell that is not good, and why
reason() {
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) { sub(/\r$/, "", $i); at[$i] = i }; next }
        $at["status"] != "ok" {
            text = $0
            # The reason may have commas of its own, in quotation marks.
            if (match(text, /"[^"]*"/)) text = substr(text, RSTART + 1, RLENGTH - 2); else text = $at["reason"]
            print $at["pattern"] " " $at["from"] " to " $at["to"] ", " $at["bytes"] " bytes, " $at["status"] ": " text
            exit
        }' "$out/$1.csv"
}

# The median of numbers on standard input; empty for none.
middle() {
    grep -E '^[0-9.]+([eE][-+]?[0-9]+)?$' | sort -g | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# usage: rate NAME PATTERN [BYTES]: median GB/s over the pairs of a sweep, of one size
rate() { column "$1" bandwidth_median_GBps "$2" "${3:-}" | middle; }

# usage: compare OURS THEIRS WHOSE: pass at 0.95 of another tool's figure or better
compare() {
    if [ -z "$1" ] || [ -z "$2" ]; then
        fail "no figure: toposcope '${1}', $3 '${2}' GB/s"
    elif awk -v ours="$1" -v theirs="$2" -v share="$share" 'BEGIN { exit !(ours >= share * theirs) }'; then
        pass "$1 GB/s, $3 has $2"
    else
        fail "$1 GB/s, $3 has $2: below $share of it"
    fi
}

# usage: nvbandwidth_of TEST: the median over its matrix, GB/s; empty without nvbandwidth
nvbandwidth_of() {
    have nvbandwidth || return 0
    ran "nvbandwidth.$1" nvbandwidth -t "$1" || return 0
    # Rows of the matrix begin with the number of a row, N/A is the diagonal;
    # figures have a point, which the numbers of columns above them have not.
    awk '/^[[:space:]]*[0-9]+[[:space:]]+[0-9.N]/ { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+[.][0-9]+$/) print $i }' \
        "$out/nvbandwidth.$1.out" | middle
}

# usage: torch_of KIND: GB/s of PyTorch's own copies of $mib MiB, by its events; empty without it. KIND: local, h2d or d2h
torch_of() {
    have python3 || return 0
    cat >"$out/torch_copy.py" <<'PYTHON'
import statistics
import sys

import torch

kind, size = sys.argv[1], int(sys.argv[2]) << 20
there = torch.ones(size, dtype=torch.uint8, device="cuda")
other = torch.zeros(size, dtype=torch.uint8, device="cuda") if kind == "local" else torch.zeros(size, dtype=torch.uint8).pin_memory()
target, source = (there, other) if kind == "h2d" else (other, there)
times = []
for turn in range(12):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    target.copy_(source, non_blocking=True)
    end.record()
    end.synchronize()
    if turn >= 2:
        times.append(begin.elapsed_time(end) / 1e3)
print(size / statistics.median(times) / 1e9)
PYTHON
    ran "torch.$1" python3 "$out/torch_copy.py" "$1" "$mib" || return 0
    tail -n 1 "$out/torch.$1.out"
}

# usage: against_others NAME PATTERN TEST KIND: a sweep's rate against nvbandwidth's, else PyTorch's
against_others() {
    ours=$(rate "$1" "$2")
    theirs=$(nvbandwidth_of "$3")
    if [ -n "$theirs" ]; then
        compare "$ours" "$theirs" "nvbandwidth $3"
        return
    fi
    theirs=$(torch_of "$4")
    if [ -n "$theirs" ]; then
        compare "$ours" "$theirs" "PyTorch's copy"
    else
        pass "$ours GB/s (nothing to compare with: neither nvbandwidth nor PyTorch with a GPU)"
    fi
}

step_environment() {
    step=environment
    {
        uname -a
        have lscpu && lscpu
        have numactl && numactl -H
        env | grep -E '^(NCCL|CUDA|UCX|OMPI|PRTE|LD_LIBRARY_PATH|SLURM|NVIDIA)' | sort
        have ldconfig && ldconfig -p | grep -E 'libcuda|libnccl|libnvidia-ml|libmpi'
    } >"$out/environment.out" 2>&1
    for query in "-q" "topo -m" "topo -p2p r" "nvlink -s"; do
        # shellcheck disable=SC2086 # words
        have nvidia-smi && ran "nvidia-smi.$(echo "$query" | tr -d ' -')" nvidia-smi $query
    done
    if have nvidia-smi; then
        ran gpus nvidia-smi --query-gpu=index,pci.bus_id,uuid,pcie.link.gen.max,pcie.link.width.max,name --format=csv,noheader || { fail "nvidia-smi: $(why gpus)"; return; }
        pass "$(wc -l <"$out/gpus.out") GPU(s) by nvidia-smi: $(head -n 1 "$out/gpus.out")"
    else
        skip "no nvidia-smi"
    fi
}

# GPUs are there, or everything that needs one is skipped: sets $gpus to their number.
step_doctor() {
    step=doctor
    gpus=0
    if ! ran doctor "$program" doctor --json; then
        fail "$(why doctor)"
        return
    fi
    "$program" doctor >"$out/doctor.txt" 2>&1
    cuda=$(state cuda)
    if [ "$cuda" = ok ]; then
        # "CUDA 12.8, 8 x NAME, 2 x ANOTHER": those that this process is shown, which may be fewer than there are.
        gpus=$(check cuda fact | tr ',' '\n' | awk '$2 == "x" { sum += $1 } END { print sum + 0 }')
        pass "$(check cuda fact); NCCL $(state nccl), NVML $(state nvml), MPI $(state mpi)"
    elif [ -s "$out/gpus.out" ]; then
        fail "nvidia-smi sees GPUs, but the CUDA driver is $cuda (see doctor.txt)"
    else
        skip "no CUDA driver: $(grep -i 'cuda driver' "$out/doctor.txt" | head -n 1 | tr -s ' ')"
    fi
}

step_discovery() {
    step=discovery
    if ! ran discover "$program" discover --json; then
        fail "$(why discover)"
        return
    fi
    "$program" discover >"$out/discover.txt" 2>&1 </dev/null
    if [ ! -s "$out/gpus.out" ]; then
        skip "no nvidia-smi to compare with; what was seen is in discover.txt"
        return
    fi
    missing=
    while IFS=, read -r index bus uuid generation width name; do
        # 00000000:17:00.0 there, 0000:17:00.0 here.
        bus=$(printf '%s' "$bus" | tr -d ' ' | tr 'A-F' 'a-f' | sed 's/^0000\([0-9a-f]\{4\}:\)/\1/')
        uuid=$(printf '%s' "$uuid" | tr -d ' ')
        lanes="Gen$(printf '%s' "$generation" | tr -d ' ') x$(printf '%s' "$width" | tr -d ' ')"
        name=${name# }
        grep -q -F "\"$bus\"" "$out/discover.out" || missing="$missing GPU $index: PCI address $bus;"
        seen=$(name_of "$uuid")
        if [ -z "$seen" ]; then
            missing="$missing GPU $index: $uuid;"
        elif [ "$seen" != "$name" ]; then
            missing="$missing GPU $index: name $name, here $seen;"
        fi
        case $lanes in
        *[!0-9A-Za-z\ ]*) ;; # [N/A]
        *)
            seen=$(lanes_of "$bus")
            printf '%s\n' "$seen" | grep -q -x "$lanes" || missing="$missing GPU $index: link $lanes, here $(printf '%s' "${seen:-none}" | tr '\n' ' ');"
            ;;
        esac
    done <"$out/gpus.out"
    if [ -n "$missing" ]; then
        fail "nvidia-smi has, and discover.out has not:$missing"
    elif [ -s "$out/nvidia-smi.topom.out" ] && ! ran discover.topo "$program" discover --from "$out/nvidia-smi.topom.out" --json; then
        fail "nvidia-smi topo -m was not read: $(why discover.topo)"
    else
        pass "every GPU of nvidia-smi is there, by name, PCI address, UUID and widest link"
    fi
}

# usage: name_of UUID: what discover calls that GPU
name_of() {
    awk -F'"' -v uuid="$1" '$2 == "name" { name = $4 } $2 == "uuid" && $4 == uuid { print name; exit }' "$out/discover.out"
}

# usage: lanes_of ADDRESS: what discover says its link can do, and where its slot can do less, that: Gen5 x16, a line each
lanes_of() {
    awk -F'"' -v address="$1" '
        $2 == "address" { own = $4 == address; part = 0 }
        own && ($2 == "most" || $2 == "port") { part = 1 }
        own && part && $2 == "speed" { speed = $3; gsub(/[^0-9.]/, "", speed) }
        own && part && $2 == "width" {
            width = $3
            gsub(/[^0-9]/, "", width)
            generation = speed > 48 ? 6 : speed > 24 ? 5 : speed > 12 ? 4 : speed > 6 ? 3 : speed > 3 ? 2 : 1
            print "Gen" generation " x" width
            part = 0
        }' "$out/discover.out"
}

# usage: needs_gpu: false, and told, where there is none
needs_gpu() {
    [ "$gpus" -gt 0 ] && return 0
    skip "no GPU"
    return 1
}

step_local_copies() {
    step=local_copies
    needs_gpu || return 0
    if sweep local -- --engine threads --ranks 1 --memory cuda --gpus 0 --patterns local --sizes "${mib}MiB" --repeats "$repeats" --warmup 2; then
        against_others local local device_local_copy local
    else
        fail "$(why local)"
    fi
}

step_host_copies() {
    for way in host_to_device device_to_host; do
        step=$way
        needs_gpu || continue
        if ! "$program" sweep --help 2>/dev/null | grep -q "$way"; then
            skip "this toposcope has no pattern $way"
            continue
        fi
        [ $way = host_to_device ] && kind=h2d || kind=d2h
        if sweep "$way" -- --engine threads --ranks 1 --memory cuda --gpus 0 --patterns "$way" --sizes "${mib}MiB" --repeats "$repeats" --warmup 2; then
            against_others "$way" "$way" "${way}_memcpy_ce" "$kind"
        else
            fail "$(why "$way")"
        fi
    done
}

# usage: step_mover MOVER RANKS GPUS PATTERNS: a sweep of an MPI job on device memory
step_mover() {
    step=$1
    needs_gpu || return 0
    mpi "$2" || { skip "$lacks"; return 0; }
    case $1 in
    nccl*) [ "$(state nccl)" = ok ] || { skip "no NCCL that can be loaded (see doctor.txt)"; return 0; } ;;
    esac
    # shellcheck disable=SC2086 # words of the launcher
    if sweep "$1" $launch -- --memory cuda --gpus "$3" --mover "$1" --patterns "$4" --sizes "64KiB,$((mib / 16))MiB,${mib}MiB" --repeats "$repeats"; then
        first=${4%%,*}
        cells=$(column "$1" status | wc -l)
        pass "ranks: $2, $4: all of $cells cells right, $first of ${mib} MiB $(rate "$1" "$first" $((mib << 20))) GB/s"
    elif [ "$1" = nccl_put ] && grep -q 'NCCL 2.29' "$out/$1.err"; then
        skip "$(why "$1")"
    else
        fail "$(why "$1")"
    fi
}

# usage: step_scenarios NAME RANKS GPUS METHODS WORDS: benchmark scenarios of an MPI job on device memory, every byte compared
step_scenarios() {
    step=$1
    needs_gpu || return 0
    mpi "$2" || { skip "$lacks"; return 0; }
    used=$4
    without=
    if ! scenarios_by "$used" "$@"; then
        # Not every mover runs plans: go on with those of them that do, and say so.
        there=$(sed -n 's/.*--methods: .*these ranks have //p' "$out/$1.err" | tr -d ' ' | head -n 1)
        used=
        for method in $(echo "$4" | tr ',' ' '); do
            case ",$there," in *",$method,"*) used="$used${used:+,}$method" ;; *) without="$without $method" ;; esac
        done
        [ -n "$used" ] && rm -rf "$out/$1.session"
        if [ -z "$used" ] || ! scenarios_by "$used" "$@"; then
            fail "$(why "$1")"
            return 0
        fi
    fi
    pass "by $used: every row complete and every byte right (tables in $1.out)${without:+; this toposcope runs no plans by:$without}"
}

# usage: scenarios_by METHODS, and as step_scenarios
scenarios_by() {
    # shellcheck disable=SC2086 # words of the launcher, and of scenarios
    ran "$2" $launch "$program" scenarios run $6 --repeats "$repeats" --methods "$1" --memory cuda --gpus "$4" --session "$out/$2.session" --out "$out/$2.json"
}

# The same on host memory: what runs on every machine.
step_host_scenarios() {
    step=host_scenarios
    if ran host_scenarios "$program" scenarios run one_host --engine threads --ranks 2 --sizes 1MiB --bytes 64MiB --repeats 2 --warmup 1 \
        --session "$out/host_scenarios.session" --out "$out/host_scenarios.json"; then
        pass "tables in host_scenarios.out"
    else
        fail "$(why host_scenarios)"
    fi
}

finish() {
    rmdir "$XDG_DATA_HOME" 2>/dev/null
    echo "$(grep -c ^PASS "$out/steps.txt") passed, $failed failed, $(grep -c ^SKIP "$out/steps.txt") skipped; bring home: $out"
    [ "$failed" -eq 0 ]
}
