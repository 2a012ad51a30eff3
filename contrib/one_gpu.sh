#!/bin/sh
# Check toposcope on a machine with one NVIDIA GPU: contrib/one_gpu.sh [FOLDER]
#
# Everything that was run and printed goes into FOLDER (default: gpu-check-HOST-TIME); bring all of it home. A line for each step:
# PASS, FAIL or SKIP, with the reason; exit code 1 if one failed, 2 if nothing could be started. Without a GPU every step that needs one
# is skipped. It needs no network, and takes 5 minutes at most. Named by the environment: TOPOSCOPE (the program), TOPOSCOPE_MPIRUN (the
# launcher), TOPOSCOPE_STEP_LIMIT and TOPOSCOPE_CHECK_LIMIT (seconds of a tool, 120, and of all, 300), TOPOSCOPE_STEP_MIB (the large
# messages, 256: smaller ones say less of a GPU) and TOPOSCOPE_STEP_REPEATS (6).
#
#   step             what must come out
#   environment      nvidia-smi answers; its -q, topo and nvlink are kept
#   doctor           the CUDA driver is found where nvidia-smi sees a GPU
#   discovery        every GPU of nvidia-smi is seen, with its name, PCI address, UUID and widest link; topo -m is read
#   local_copies     copies within the GPU: 0.95 of nvbandwidth's device_local_copy or better, else of PyTorch's copy
#   host_to_device, device_to_host   the same with nvbandwidth's host_to_device_memcpy_ce and device_to_host_memcpy_ce
#   cuda_ipc_pull, cuda_ipc_push     two processes that share the GPU: every payload right
#   nccl             a communicator of one rank moves what it sends itself, right
#   scenarios        two processes that share the GPU: peer, pairs, fans, ring; every byte right
#   host_scenarios   the same on host memory
set -u
# shellcheck source-path=SCRIPTDIR source=gpu_steps.sh
. "$(dirname "$0")/gpu_steps.sh"

begin "${1:-}"
step_environment
step_doctor
step_discovery
step_local_copies
step_host_copies
step_mover cuda_ipc_pull 2 0,0 peer
step_mover cuda_ipc_push 2 0,0 peer
step_mover nccl 1 0 local
step_scenarios scenarios 2 0,0 cuda_ipc_pull,cuda_ipc_push "one_host --sizes 4MiB,$((mib / 4))MiB --bytes $((4 * mib))MiB"
step_host_scenarios
finish
