//! Small outputs of every tool whose measurements are read, with what makes trouble in them: what damaged ones are made of.

/// Which tool, and a small output of it.
pub const SEEDS: [(&str, &str); 22] = [
    (
        "nvbandwidth",
        "nvbandwidth Version: v0.8\n\nnode1\nDevice 0: NVIDIA A100 (00000000:34:00)\nDevice 1: NVIDIA A100 (00000000:35:00)\n\n\
         Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n \
         0       N/A     20.00\n 1     10.00       N/A\n\nSUM device_to_device_memcpy_read_ce 30.00\n\nRunning all_to_one_write_ce.\n\
         memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n 0 5 6\n\nRunning device_to_device_latency_sm.\nWaived: \n",
    ),
    (
        "nvbandwidth",
        r#"{"nvbandwidth": {"GPU Device list": ["0: A (0:34:00): (n7)"], "testcases": [{"name": "device_to_device_memcpy_read_ce",
         "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", "bandwidth_matrix": [["N/A", "20"], ["10", "N/A"]]}]}}"#,
    ),
    (
        "p2pBandwidthLatencyTest",
        "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, L4, pciBusID: 3b, pciDeviceID: 0, pciDomainID:0\nP2P Connectivity Matrix\n\
         \x20    D\\D     0     1\n     0\t     1     1\n     1\t     1     1\nUnidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n\
         \x20  D\\D     0      1\n     0 200.00  11.00\n     1  22.00 400.00\nP2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1\n\
         \x20    0   1.50  12.00\n     1  13.00   1.60\n\n   CPU     0      1\n     0   2.00   5.00\n     1   5.00   2.00\n",
    ),
    (
        "nccl-tests",
        "# nccl-tests version 2.18.2 nccl-headers=23007\n# Collective test starting: sendrecv_perf\n# nThread 1 nGpus 1\n# Using devices\n\
         #  Rank  0 Group  0 Pid 1 on node1 device  0 [0009:01:00] NVIDIA GH200\n#  Rank  1 Group  0 Pid 2 on node2 device  1 [0x31] NVIDIA GH200\n#\n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
         \x201048576  262144  float  sum  -1  339.61  3.09  3.09  0  335.85  3.12  3.12  N/A\n# Out of bounds values : 0 OK\n",
    ),
    (
        "nccl-tests",
        r#"{"version": 1, "args": ["sendrecv_perf"], "config": {"nthreads": 1, "devices": [{"rank": 0, "hostname": "a", "device": 0, "device_hex": "0009:01:00"},
         {"rank": 1, "hostname": "b", "device": 0, "device_hex": "x"}]}, "results": [{"size": 1024, "out_of_place": {"time": 10.5, "nwrong": "0"}}]}"#,
    ),
    (
        "DeepSpeed",
        r#"{"format": 1, "world": 2, "node_of": [0, 1], "backend": "nccl", "device": "cuda", "samples": [
         {"pattern": "peer", "both_ways": false, "from_process": 0, "to_process": 1, "bytes": 4096, "repeat": 0, "seconds": 1e-5, "path": "inter_node"},
         {"pattern": "fan_in", "from_process": 1, "to_process": 0, "root": 0, "peers": [1], "width": 1, "bytes": 4096, "repeat": 0, "seconds": 1e-5, "root_seconds": 2e-5}]}"#,
    ),
    (
        "mpiGraph",
        "START mpiGraph v1.5\nMsgSize\t8192\nTimes\t10\nWindow\t4\nProcs\t3\n\n1 of 3 (33.3%)\nGathering results\n\nSend max\t11.0\nSend\tx:0\tx:1\ty:2\t\n\
         x:0 to\t0.000\t11.000\t3.000\t\nx:1 to\t10.500\t0.000\t2.900\t\ny:2 to\t3.100\t0.000\t0.000\t\n\nRecv\tx:0\tx:1\ty:2\t\nx:0 from\t0.000\t10.000\t3.000\t\n\
         x:1 from\t11.000\t0.000\t?\t\ny:2 from\t2.800\t2.900\t0.000\t\nEND mpiGraph\n",
    ),
    (
        "OSU",
        "# OSU MPI-CUDA Bandwidth Test v7.4\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)        Validation\n\
         2                       0.31              Pass\nucx: a warning\n65536                12000.00              Fail\n131072     oops\n\n\
         # OSU MPI Bi-Directional Bandwidth Test v5.7.1\n# Size      Bandwidth (MB/s)\n1048576             23000.00\n# OSU MPI Latency Test v5.7.1\n\
         # Size          Latency (us)\n0                       1.23\n16                      1.40\n",
    ),
    (
        "OSU",
        "# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n# [ pairs: 8 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s\n1024              9000.00        8789062.50\n\
         # OSU MPI_Get Bandwidth Test v7.3\n# Window creation: MPI_Win_allocate\n# Synchronization: MPI_Win_flush\n# Size Bandwidth (MB/s)\n128 9.50\n\
         # OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n4 12.5\n",
    ),
    (
        "IMB",
        "#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n# Benchmarking PingPong\n# #processes = 2\n# ( 6 additional processes waiting in MPI_Barrier)\n#---\n\
         \x20      #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000         0.61         0.00\n         2000         1000        10.00       200.00\n\
         \x20     4194304           10     bad     time\n\n# Benchmarking Sendrecv\n# #processes = 2\n#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n\
         524288 20 45.00 50.00 47.50 20971.52\n# Benchmarking Exchange\n# #processes = 2\n #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n1000 10 9.00 20.00 9.50 200.00\n",
    ),
    (
        "IMB",
        "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n 8 1000 2.0 2.0 2.0\n# Benchmarking Biband\n# #processes = 2\n\
         #bytes #repetitions   Mbytes/sec      Msg/sec\n 1000 1000 500.00 500000\n# Benchmarking Uniband\n# #processes = 4\n#bytes #repetitions   Mbytes/sec      Msg/sec\n 1000 1000 700.00 700000\n\
         # Benchmarking PingPong\n# ( 2 groups of 2 processes each running simultaneous )\n#bytes #repetitions t[usec] Mbytes/sec\n8 1 1.0 8.0\n# All processes entering MPI_Finalize\n",
    ),
    (
        "perftest",
        "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_2\n Number of qps   : 4\t\tTransport type : IB\n TX depth        : 128\n\
         ---------------------------------------------------------------------------------------\n local address: LID 0x01 QPN 0x1a PSN 0x1b RKey 0x1 VAddr 0x2\n\
         \x20remote address: LID 0x01 QPN 0x1c PSN 0x1d RKey 0x1 VAddr 0x2\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n\
         \x2065536      5000             23100.74            23000.00\t\t   0.368000\n---\n                    RDMA_Write BW Test\n\
         \x20local address: LID 0x01 QPN 0x1c PSN 0x1d RKey 0x1 VAddr 0x2\n remote address: LID 0x01 QPN 0x1a PSN 0x1b RKey 0x1 VAddr 0x2\n\
         \x20#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      5000             23100.74            23000.00\t\t   0.368000\n",
    ),
    (
        "perftest",
        "Send Bidirectional BW Test\n#bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n65536 5000 0.00 380.00 0.72\nRDMA_Read Latency Test\n\
         \x20#bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n\
         4 1000 1.70 8.00 1.80 1.90 0.10 2.10 8.00\n",
    ),
    (
        "perftest",
        "{\n\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\",\n\"Device\": \"mlx5_3\",\n\"Number_of_qps\": 2\n},\n\"results\": {\n\"MsgSize\": 65536,\nsl: 3,\n\"n_iterations\": 5000,\n\
         \"BW_peak\": 0.00,\n\"BW_average\": 190.02,\n\"MsgRate\": 0.362434\n}\n}\n",
    ),
    (
        "ucx_perftest",
        "| API:          protocol layer   |\n| Test:         get bandwidth   |\n| Send memory:  cuda   |\n| Recv memory:  host  |\n| Message size: 65000   |\n\
         +--------------+--------------+------------------------------+---------------------+-----------------------+\n\
         |              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n\
         |    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |\n\
         [thread 0]              5000      4.100    30.300    30.300     2050.00    2050.00       32800       32800\n\
         Final:                 10000      4.110    30.348    30.348     2100.50    2100.50       33608       33608\n",
    ),
    (
        "ucx_perftest",
        "put_lat,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n16,10000,3.961,4.065,4.065,3.76,3.76,246015,246015\n\
         16,20000,3.961,4.065,4.065,3.76,3.80,246015,249000\n4096,20000,1,2,3,4,976.56,1,250000\n",
    ),
    (
        "TransferBench",
        "TransferBench v1.50\n====\n[Common]\nALWAYS_VALIDATE      =            0 : Validating\nBytes Per Direction 8388608\n\
         Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)\n   SRC+EXE\\DST    CPU 00       GPU 00    GPU 01\n\
         \x20  CPU 00  ->     25.00        18.00     17.00\n   GPU 00  ->     22.00       110.00     63.00\n   GPU 01  ->       N/A        65.00    108.00\n\
         \x20                 CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU\nAverages (During UniDir):     22.23     16.35     23.77     37.74\n\
         Bidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)\n   SRC\\DST    CPU 00       GPU 00    GPU 01\n\
         \x20  GPU 00  ->     23.00          N/A     61.40\n   GPU 00 <-      16.00          N/A     64.21\n   GPU 00 <->     39.00          N/A    125.61\n",
    ),
    (
        "TransferBench",
        "Test 1:\n     Transfer 00  |  50.1 GB/s |  1.3 ms |  67108864 bytes | G0 -> GPU00:004 -> G1\n     Transfer 01  |  49.0 GB/s |  1.3 ms |  67108864 bytes | C0 -> CPU00:004 -> G1\n\
         Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms)\n1,0,1048576,G0,G0,G1,4,45.1,0.2\n2,0,1048576,G1,G0,C0,4,x,0.2\n",
    ),
    (
        "rocm_bandwidth_test",
        "....\n          RocmBandwidthTest Version: 2.6.0\n\n          Launch Command is: rocm-bandwidth-test -a\n\n          Device: 0,  A Processor\n\
         \x20         Device: 1,  A GPU,  GPU-34,  c5:0.0\n\n          Inter-Device Access\n\n          D/D       0         1\n\n          0         1         0\n\n\
         \x20         Unidirectional copy peak bandwidth GB/s\n\n          D/D       0           1\n\n          0         N/A         21.000\n\n          1         31.000      410.000\n\n\
         \x20         Bidirectional copy peak bandwidth GB/s\n\n          D/D       0           1\n\n          0         N/A         45.000\n\n          1         45.000      N/A\n\n\
         ================           Unidirectional Benchmark Result     ===============\nSrc Device Id: 0 Src Device Type: Cpu\nDst Device Id: 1 Dst Device Type: Gpu\n\
         Data Size      Avg Time(us)   Avg BW(GB/s)   Min Time(us)   Peak BW(GB/s)\n64 KB  7.520  8.715  7.520  8.715\n",
    ),
    (
        "nvloom",
        "nvloom_cli 1.3.0\nBuffer size: 512 MiB\nProcess 0 (n3): device 0: NVIDIA GB200 (00000008:01:00); rackGuid: r\nProcess 1 (n3): device 1: NVIDIA GB200 (00000009:01:00); rackGuid: r\n\
         Process 2 (n4): device 0: NVIDIA GB200 (00000008:01:00); rackGuid: r\n\nRunning device_to_device_unidir_write_ce\n\t0\t1\t2\t\n0\tN/A\t390.00\t380.00\t\n\
         1\t391.00\tN/A\tN/A\t\n2\t385.00\t0\tN/A\t\n\nMin device_to_device_unidir_write_ce 380.00 GB/s\nDone device_to_device_unidir_write_ce\n\n\
         Running bisect_device_to_device_write_ce\n\t0\t\n0->2\t370.00\t\n2->1\t371.00\t\n\nMin b 1\nRunning device_to_device_bidir_read_ce\n\t0\t1\t\n0\tN/A\t760.00\t\n1\t760.00\tx\t\n\
         Running gpu_to_rack_device_to_device_unidir_write_ce\n\tr1-0\tr1-1\t|\tr2-0\t\n0\t5.00;(0-1)\t6.00;(0-2)\t|\t7.00;(0-9)\t\n",
    ),
    (
        "nvloom",
        "measurement_id, bandwidth/latency, gpu_src_id, gpu_dst_id, iteration_count, mem_src_type, mem_dst_type, write/read, ce/sm/multicast, buffer_size, comment, result [GB/s] [ns]\n\
         0, bandwidth, 0, 3, 16, device, device, write, ce, 1048576, c, 11.5\n1, bandwidth, 1, 2, 16, device, device, read, sm, 4096, , 2\n\
         1, bandwidth, 2, 1, 16, device, device, read, sm, 4096, , 3\n2, latency, 0, 1, 1024, device, ignored, ignored, ignored, ignored, , 800\n",
    ),
    ("nothing", "me@host:~$ ./a.out\nhello 1 2 3\n"),
];
