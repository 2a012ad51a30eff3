//! Small inputs of every format, each with what makes trouble in it, that damaged inputs are made of.

pub const SEEDS: [(&str, &str); 15] = [
    (
        "topo -m",
        "me@node1:~$ nvidia-smi topo -m\n\t\u{1b}[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
         GPU0\t X \tNV18\tNV18\tPIX\t0-31,64-95\t0\t\tN/A\nGPU1\tNV18\t X \tNV18\tSYS\t32-63\t1\t\tN/A\n\
         GPU2\tNV18\tNV18\t X \tNODE\t\t1\t\t2\nNIC0\tPIX\tSYS\tNODE\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n",
    ),
    (
        "topo -m",
        "```\n      GPU0  GPU1  mlx5_0  CPU Affinity\nGPU0   X    NODE  PHB     0-15,32-47\nGPU1  NODE   X    SYS     16-31\nmlx5_0  PHB  SYS   X\n```\n",
    ),
    ("topo -m", "GPU1 NV4 X SYS SYSSYS 4-7 1 N/A\nNIC0 SYS SYS X NODENODE\nNIC1 SYS SYS NODE XPIX\n"),
    ("topo -p2p", "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tCNS\tX\n\nLegend:\n  OK   = Status Ok\n"),
    (
        "nvlink -s",
        "GPU 0: NVIDIA H100 (UUID: GPU-00)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\nGPU 1: NVIDIA H100\n\
         NVML: Unable to retrieve NVLink information as all links are inActive\nGPU 2: A (UUID: GPU-3)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\n",
    ),
    (
        "NCCL XML",
        "<!-- <system> -->\n<system version=\"1\"><cpu host_hash=\"0x1\" numaid=\"0\" affinity=\"0000ffff,ffffffff\">\n\
         <pci busid=\"0000:10:00.0\" class=\"0x060400\" vendor=\"0x104c\" device=\"0x8232\" link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">\n\
         <pci busid=\"0000:12:00.0\" class=\"0x030200\" vendor=\"0x10de\" link_speed=\"32.0 GT/s PCIe\" link_width=\"0\"><gpu dev=\"0\" sm=\"90\">\n\
         <nvlink target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/><c2c bw=\"44712\" count=\"10\"/></gpu></pci>\n\
         <pci busid=\"0000:13:00.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\"><nic><net name=\"mlx5_0\" speed=\"200000\" port=\"1\" gdr=\"1\"/>\n\
         </nic></pci><pcilink target=\"0000:13:00.0\"/></pci></cpu><cpu host_hash=\"0x2\" numaid=\"-1\"><nic><net name=\"eth0\"/></nic></cpu></system>\n",
    ),
    (
        "hwloc XML",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n<object type=\"Machine\" cpuset=\"0xf...f\" nodeset=\"0x3\">\n\
         <info name=\"HostName\" value=\"n\"/><object type=\"Package\" os_index=\"0\" cpuset=\"0x3\" nodeset=\"0x1\">\n\
         <object type=\"NUMANode\" os_index=\"0\" gp_index=\"4\" cpuset=\"0x3,,0x1\" local_memory=\"4096\"/><object type=\"L3Cache\" cache_size=\"99\" cpuset=\"0x3\"/>\n\
         <object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[3a-3d]\"><object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:3a:00.0\" pci_type=\"0604 [8086:2030] [0:0] 04\" pci_link_speed=\"15.753846\">\n\
         <object type=\"PCIDev\" gp_index=\"7\" pci_busid=\"0000:3d:00.0\" pci_type=\"0302 [10de:1db8] [0:0] a1 00\" pci_link_speed=\"3.938462\">\n\
         <object type=\"OSDev\" gp_index=\"8\" name=\"nvml0\" osdev_type=\"1\"><info name=\"GPUModel\" value=\"V\"/></object></object>\n\
         <object type=\"PCIDev\" pci_busid=\"0000:3d:00.1\" pci_type=\"0207 [15b3:1017] [0:0] 00\"><object type=\"OSDev\" name=\"ib0\" osdev_type=\"2\"/><object type=\"OSDev\" name=\"mlx5_0\" osdev_type=\"3\"/></object>\n\
         </object></object></object></object>\n<distances2 type=\"NUMANode\" name=\"NUMALatency\"><indexes>0 </indexes><u64values>10 </u64values></distances2>\n\
         <distances2hetero name=\"NVLinkBandwidth\"><indexes>OSDev:8 NUMANode:4</indexes><u64values>0 50000 50000 0</u64values></distances2hetero></topology>\n",
    ),
    (
        "hwloc XML",
        "<topology><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"8\" cpuset=\"0x3\"><distances nbobjs=\"1\" latency_base=\"10.0\"><latency value=\"1.0\"/></distances>\n\
         <object type=\"Socket\" os_index=\"0\" cpuset=\"0x3\"><object type=\"Cache\" depth=\"2\" cache_size=\"5\" cpuset=\"0x3\"/></object></object></object></topology>\n",
    ),
    (
        "lspci",
        "00:01.0 PCI bridge [0604]: Intel Root [8086:2030] (rev 07) (prog-if 00 [Normal decode])\n\tNUMA node: 1\n\tBus: primary=00, secondary=3a, subordinate=3c\n\
         \tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n\t\tLnkCap:\tPort #2, Speed 16GT/s, Width x16\n\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x16 (ok)\n\
         \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd+ EgressCtrl- DirectTrans-\n\n3a:00.0 3D controller [0302]: NVIDIA GA100 [A100] [10de:20b2] (rev a1)\n\
         \t\tLnkSta:\tSpeed 2.5GT/s, Width x8\n\tKernel driver in use: nvidia\n3a:00.1 Ethernet controller: Mellanox X\n",
    ),
    (
        "lspci",
        "$ sudo lspci -s 02:00.0 -vvv | grep Speed\n\nLnkCap: Port #0, Speed 32GT/s, Width x16\nLnkSta: Speed 32GT/s (ok), Width x16 (ok)\n",
    ),
    (
        "lspci -tv",
        "-+-[0000:ae]-+-00.0-[af-b2]----00.0-[b0-b2]--+-04.0-[b1]----00.0  NVIDIA Corporation GV100GL\n \
         |           |                               \\-08.0-[b2]--+-00.0  Mellanox Technologies [ConnectX-5]\n \
         |           |                                            \\-00.1  Mellanox Technologies [ConnectX-5]\n \
         |           \\-05.0  Intel Corporation\n \\-[0000:00]-+-00.0  Intel Corporation\n             \\-1f.3  Intel Audio\n",
    ),
    (
        "ibstat",
        "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 2\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tPort GUID: 0x1\n\
         \t\tLink layer: InfiniBand\n\tPort 2:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 40\n\t\tLink layer: Ethernet\n",
    ),
    ("ibdev2netdev", "mlx5_0 port 1 ==> eth2 (Up)\n0000:3b:00.0 mlx5_1 (MT4123 - X) CX653106A fw 20.1 port 1 (ACTIVE) ==> ib0 (Down)\n"),
    (
        "NCCL log",
        "n1:1:2 [0] NCCL INFO === System : maxBw 24.0 totalBw 240.0 ===\nn1:1:3 [1] NCCL INFO === System : maxBw 24.0 totalBw 240.0 ===\n\
         n1:1:2 [0] NCCL INFO CPU/0-1 (1/2/-1)\nn1:1:2 [0] NCCL INFO + SYS[10.0] - CPU/0-0\nn1:1:3 [1] NCCL INFO CPU/0-1 (1/2/-1)\n\
         n1:1:2 [0] NCCL INFO + PCI[48.0] - PCI/0-1000 (1000c03015b31000)\nn1:1:2 [0] NCCL INFO               + PCI[24.0] - GPU/0-3b000 (1)\n\
         n1:1:2 [0] NCCL INFO                             + NVL[240.0] - NVS/0-0\nn1:1:2 [0] NCCL INFO               + PCI[12.0] - NIC/0-3c000\n\
         n1:1:2 [0] NCCL INFO                             + NET[25.0] - NET/0-2 (0/7a852d0003f6ceb8/1/25.000000)\nn1:1:2 [0] NCCL INFO ====\n\
         n1:1:3 [1] NCCL INFO ====\n",
    ),
    ("refused", "# nThread 1 nGpus 1\nLnkSta: Speed 8GT/s, Width x8\n<graphs version=\"1\"></graphs>\n"),
];
