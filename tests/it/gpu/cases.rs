//! What the tests here have child processes do, through cudarc: a process's libraries are those of its environment when it starts.

use std::ffi::c_void;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use super::stand_in::{self, Told, told};

/// What a child is to do, and what else it is told.
const CASE: &str = "TOPOSCOPE_TEST_CASE";
const TOLD: &str = "TOPOSCOPE_TEST_TOLD";

/// Bytes of what most cases move.
pub const BYTES: usize = 1 << 20;

/// The test binary, about to do a case under the stand-ins.
pub fn command(case: &str, report: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["gpu::cases::child", "--exact", "--ignored", "--nocapture"]).env(CASE, case);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    stand_in::serve(&mut command, report);
    // cudarc asks for libnccl.so, which machines with the library alone do not have.
    let folder = stand_in::stand_ins();
    let plain = folder.with_file_name("stand_ins_plain");
    std::fs::create_dir_all(&plain).unwrap();
    drop(std::os::unix::fs::symlink(folder.join("libnccl.so.2"), plain.join("libnccl.so")));
    command.env("LD_LIBRARY_PATH", std::env::join_paths([folder, plain]).unwrap());
    command
}

/// A process that did a case must have ended well; what it said.
pub fn ended(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    said
}

/// Do a case in one process with more in its environment; what it told.
pub fn run(case: &str, set: &[(&str, &str)]) -> Told {
    let report = tempfile::tempdir().unwrap();
    ended(command(case, report.path()).envs(set.iter().copied()).spawn().unwrap());
    told(report.path(), "cuda")
}

/// The process that does a case.
#[test]
#[ignore = "the other tests here start it"]
fn child() {
    let case = std::env::var(CASE).unwrap();
    match case.as_str() {
        "gate" => gate(),
        "devices" => devices(),
        "owner" => owner(),
        "opener" => opener(),
        "broken rules" => broken_rules(),
        "order of streams" => order_of_streams(),
        "pageable" => pageable(),
        "allocate" => allocate(),
        "sticky" => sticky(),
        "late" => late(),
        "no wait" => no_wait(),
        "full" => full(),
        "count" => println!("{:?}", CudaContext::device_count().map_err(|error| error.0)),
        case => super::ranks::do_case(case),
    }
}

/// What else this process was told.
pub fn was_told() -> String {
    std::env::var(TOLD).unwrap()
}

/// A context, and a stream that does not wait for the default one.
pub fn device(ordinal: usize) -> (Arc<CudaContext>, Arc<CudaStream>) {
    let context = CudaContext::new(ordinal).unwrap();
    let stream = context.new_stream().unwrap();
    (context, stream)
}

pub fn settle(stream: &CudaStream) {
    stream.synchronize().unwrap();
}

/// Device memory, all bytes alike.
pub fn filled(byte: u8, bytes: usize) -> u64 {
    // SAFETY: memory of our own.
    unsafe {
        let at = result::malloc_sync(bytes).unwrap();
        result::memset_d8_sync(at, byte, bytes).unwrap();
        result::ctx::synchronize().unwrap();
        at
    }
}

/// All bytes of device memory, which the default stream reads.
pub fn read(at: u64, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    // SAFETY: memory of our own, of this size.
    unsafe { result::memcpy_dtoh_sync(&mut read, at).unwrap() };
    read
}

pub fn free(at: u64) {
    // SAFETY: memory of our own, once.
    unsafe { result::free_sync(at).unwrap() };
}

pub fn code(code: sys::CUresult) -> Result<(), sys::CUresult> {
    code.result().map_err(|error| error.0)
}

/// A copy behind a gate has not happened, and its time begins when the gate opens.
fn gate() {
    let (context, stream) = device(0);
    let (from, to) = (filled(7, BYTES), filled(0, BYTES));
    // SAFETY: memory and events of our own; the word is written by this process and read by the stream.
    unsafe {
        let word = result::malloc_host(4, 0).unwrap().cast::<u32>();
        word.write_volatile(0);
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).unwrap();
        let (begin, end) = (event(), event());
        code(sys::cuStreamWaitValue32_v2(stream.cu_stream(), word.addr() as u64, 1, 0)).unwrap();
        result::event::record(begin, stream.cu_stream()).unwrap();
        result::memcpy_dtod_async(to, from, BYTES, stream.cu_stream()).unwrap();
        result::event::record(end, stream.cu_stream()).unwrap();
        // Time goes by that must not count.
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert_eq!(result::event::query(end).map_err(|error| error.0), Err(sys::CUresult::CUDA_ERROR_NOT_READY));
        // The gate holds its own stream alone: the default one reads what is there.
        assert!(read(to, BYTES).iter().all(|&byte| byte == 0));
        let opened = std::time::Instant::now();
        word.write_volatile(1);
        result::event::synchronize(end).unwrap();
        let most = opened.elapsed().as_secs_f64() * 1e3;
        let milliseconds = f64::from(result::event::elapsed(begin, end).unwrap());
        // At 0.1 GB/s; and nothing of what was before the gate opened, however busy the machine is.
        assert!(milliseconds >= 10.4 && milliseconds <= most + 0.1, "{milliseconds} ms of {most} ms");
        assert!(read(to, BYTES).iter().all(|&byte| byte == 7));
        result::event::destroy(begin).unwrap();
        result::event::destroy(end).unwrap();
        result::free_host(word.cast()).unwrap();
    }
    free(from);
    free(to);
    drop((context, stream));
}

/// Bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// What CUDA tells of each device: address, UUID, bytes and whom it reaches.
fn devices() {
    result::init().unwrap();
    let count = result::device::get_count().unwrap();
    for device in 0..count {
        let mut text = [0_u8; 32];
        let mut reaches = String::new();
        // SAFETY: places to write, of the size told.
        unsafe {
            code(sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), 32, device)).unwrap();
            let mut back = -1;
            code(sys::cuDeviceGetByPCIBusId(&raw mut back, text.as_ptr().cast())).unwrap();
            assert_eq!(back, device);
            for peer in 0..count {
                let mut can = 0;
                code(sys::cuDeviceCanAccessPeer(&raw mut can, device, peer)).unwrap();
                reaches.push(if can == 1 { '1' } else { '0' });
            }
        }
        let text = String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned();
        let uuid: String = hex(&result::device::get_uuid(device).unwrap().bytes.map(i8::cast_unsigned));
        // SAFETY: a device that there is.
        let bytes = unsafe { result::device::total_mem(device) }.unwrap();
        println!("device {device} {text} {uuid} {} {reaches}", bytes >> 30);
    }
}

/// Share memory, and see what another process wrote into it.
fn owner() {
    let (context, stream) = device(0);
    let at = filled(7, BYTES);
    // SAFETY: a place to write, and memory of our own.
    let handle = unsafe {
        let mut handle: sys::CUipcMemHandle = std::mem::zeroed();
        code(sys::cuIpcGetMemHandle(&raw mut handle, at + 4096)).unwrap();
        let mut opened = 0;
        assert_eq!(code(sys::cuIpcOpenMemHandle_v2(&raw mut opened, handle, 1)), Err(sys::CUresult::CUDA_ERROR_INVALID_CONTEXT));
        handle.reserved.map(i8::cast_unsigned)
    };
    let report = std::env::var(stand_in::REPORT).unwrap();
    let mut child = command("opener", Path::new(&report)).env(TOLD, hex(&handle)).stdin(Stdio::piped()).spawn().unwrap();
    if was_told() == "frees too early" {
        // The other one has it open once it has written.
        while read(at, 1)[0] != 9 {
            std::thread::yield_now();
        }
        free(at);
        drop(child.stdin.take());
        ended(child);
    } else {
        drop(child.stdin.take());
        ended(child);
        assert!(read(at, BYTES).iter().all(|&byte| byte == 9));
        free(at);
    }
    drop((context, stream));
}

/// Open the memory of another process, read it, write to it and close it when told.
fn opener() {
    let (context, stream) = device(1);
    let hex = was_told();
    let mut handle = sys::CUipcMemHandle_st { reserved: [0; 64] };
    for (at, byte) in handle.reserved.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap().cast_signed();
    }
    let mut at = 0;
    // SAFETY: a place to write.
    unsafe {
        assert_eq!(code(sys::cuIpcOpenMemHandle_v2(&raw mut at, handle, 0)), Err(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        code(sys::cuIpcOpenMemHandle_v2(&raw mut at, handle, 1)).unwrap();
        // Once more is the same memory, counted.
        let mut again = 0;
        code(sys::cuIpcOpenMemHandle_v2(&raw mut again, handle, 1)).unwrap();
        assert_eq!(again, at);
        code(sys::cuIpcCloseMemHandle(again)).unwrap();
    }
    assert!(read(at, BYTES).iter().all(|&byte| byte == 7));
    // SAFETY: memory that is open.
    unsafe {
        result::memset_d8_sync(at, 9, BYTES).unwrap();
        result::ctx::synchronize().unwrap();
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    // SAFETY: once for each time that it was opened.
    unsafe { code(sys::cuIpcCloseMemHandle(at)).unwrap() };
    drop((context, stream));
}

/// What a stream calls may not call the driver.
unsafe extern "C" fn calls(_: *mut c_void) {
    assert!(result::mem_get_info().is_err());
}

/// One rule after another, broken.
fn broken_rules() {
    let (context, stream) = device(0);
    let (from, to) = (filled(1, BYTES), filled(2, BYTES));
    // SAFETY: the stand-in is asked what it does about faults; nothing of this is a GPU's.
    unsafe {
        let word = result::malloc_host(4, 0).unwrap().cast::<u32>();
        word.write_volatile(0);
        code(sys::cuStreamWaitValue32_v2(stream.cu_stream(), word.addr() as u64, 1, 0)).unwrap();
        result::memcpy_dtod_async(to, from, BYTES, stream.cu_stream()).unwrap();
        // freed while a stream has still to read it
        result::free_sync(from).unwrap();
        word.write_volatile(1);
        settle(&stream);
        // used after it was freed, freed twice, and past its end
        assert!(result::memcpy_dtod_async(to, from, BYTES, stream.cu_stream()).is_err());
        assert!(result::free_sync(from).is_err());
        assert!(result::memcpy_dtod_async(to, to + 1, BYTES, stream.cu_stream()).is_err());
        // asked before it was recorded, and of no time
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        result::event::query(event).unwrap();
        result::event::record(event, stream.cu_stream()).unwrap();
        result::event::synchronize(event).unwrap();
        assert!(result::event::elapsed(event, event).is_err());
        result::event::destroy(event).unwrap();
        assert!(result::event::record(event, stream.cu_stream()).is_err());
        // called by a stream
        code(sys::cuLaunchHostFunc(stream.cu_stream(), Some(calls), std::ptr::null_mut())).unwrap();
        settle(&stream);
        result::free_host(word.cast()).unwrap();
    }
    // `to` is left behind.
    drop((context, stream));
}

/// The default stream waits for the others and they for it, but for those that do not.
fn order_of_streams() {
    let context = CudaContext::new(0).unwrap();
    let (one, two) = (filled(1, BYTES), filled(2, BYTES));
    // SAFETY: memory and streams of our own.
    unsafe {
        let stream = |kind| result::stream::create(kind).unwrap();
        let (with, without) = (stream(result::stream::StreamKind::Default), stream(result::stream::StreamKind::NonBlocking));
        let word = result::malloc_host(4, 0).unwrap().cast::<u32>();
        word.write_volatile(0);
        code(sys::cuStreamWaitValue32_v2(with, word.addr() as u64, 1, 0)).unwrap();
        result::memcpy_dtod_async(two, one, BYTES, with).unwrap();
        // behind the gate, by way of the default stream
        result::memset_d8_sync(one, 3, BYTES).unwrap();
        let mut early = vec![0_u8; 4];
        result::memcpy_dtoh_async(&mut early, one, without).unwrap();
        assert_eq!(early, [1; 4]);
        word.write_volatile(1);
        assert!(read(two, BYTES).iter().all(|&byte| byte == 1));
        assert!(read(one, BYTES).iter().all(|&byte| byte == 3));
        result::stream::destroy(with).unwrap();
        result::stream::destroy(without).unwrap();
        result::free_host(word.cast()).unwrap();
    }
    free(one);
    free(two);
    drop(context);
}

/// Pageable memory is read at once, and is written when the call returns.
fn pageable() {
    let (context, stream) = device(0);
    let at = filled(0, BYTES);
    let mut bytes = vec![5_u8; BYTES];
    // SAFETY: memory of our own.
    unsafe {
        result::memcpy_htod_async(at, &bytes, stream.cu_stream()).unwrap();
        bytes.fill(6);
        result::memcpy_dtoh_async(&mut bytes, at, stream.cu_stream()).unwrap();
    }
    assert!(bytes.iter().all(|&byte| byte == 5));
    free(at);
    drop((context, stream));
}

/// Allocate once, twice, three times.
fn allocate() {
    let (context, stream) = device(0);
    // SAFETY: memory of our own.
    let had: Vec<_> = (0..3).map(|_| unsafe { result::malloc_sync(BYTES) }.map_err(|error| error.0)).collect();
    for at in had.iter().flatten() {
        free(*at);
    }
    println!("{:?}", had.iter().map(|had| had.map(|_| ())).collect::<Vec<_>>());
    drop((context, stream));
}

/// After an error that stays, each call on the device fails, and the context goes all the same.
fn sticky() {
    let (context, _stream) = device(0);
    let at = filled(0, BYTES);
    // SAFETY: memory of our own.
    unsafe {
        let failed = result::memset_d8_sync(at, 1, BYTES).map_err(|error| error.0);
        assert_eq!(failed, Err(sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE));
        let after = result::free_sync(at).map_err(|error| error.0);
        assert_eq!(after, Err(sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE));
    }
    drop(context);
}

/// A copy that is enqueued well fails when the stream gets to it.
fn late() {
    let (context, stream) = device(0);
    let (from, to) = (filled(1, BYTES), filled(2, BYTES));
    // SAFETY: memory of our own.
    unsafe {
        result::memcpy_dtod_async(to, from, BYTES, stream.cu_stream()).unwrap();
        let failed = result::stream::synchronize(stream.cu_stream()).map_err(|error| error.0);
        assert_eq!(failed, Err(sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
        assert_eq!(result::malloc_sync(1).map_err(|error| error.0), Err(sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    }
    drop((context, stream));
}

/// More work than a stream has room for behind a closed gate: whoever brings it waits until the gate is open.
fn full() {
    let (context, stream) = device(0);
    let at = filled(0, 4);
    // SAFETY: memory of our own; the word is written by this process and read by the stream.
    unsafe {
        let word = result::malloc_host(4, 0).unwrap().cast::<u32>();
        word.write_volatile(0);
        code(sys::cuStreamWaitValue32_v2(stream.cu_stream(), word.addr() as u64, 1, 0)).unwrap();
        let (brought, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let opener = std::thread::spawn({
            let (word, brought, open) = (word.expose_provenance(), Arc::clone(&brought), Arc::clone(&open));
            move || {
                // Until no more is taken.
                let mut before = usize::MAX;
                while before != brought.load(Ordering::SeqCst) || before < 1000 {
                    before = brought.load(Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                open.store(true, Ordering::SeqCst);
                std::ptr::with_exposed_provenance_mut::<u32>(word).write_volatile(1);
                before
            }
        });
        for _ in 0..1100 {
            result::memset_d8_async(at, 1, 4, stream.cu_stream()).unwrap();
            brought.fetch_add(1, Ordering::SeqCst);
        }
        assert!(open.load(Ordering::SeqCst), "1100 pieces were taken behind a closed gate");
        settle(&stream);
        assert!((1000..1100).contains(&opener.join().unwrap()));
        result::free_host(word.cast()).unwrap();
    }
    free(at);
    drop((context, stream));
}

/// A driver without words that streams wait for.
fn no_wait() {
    let (context, stream) = device(0);
    // SAFETY: looks for a name.
    let found = unsafe { sys::culib().get::<*const c_void>(b"cuStreamWaitValue32_v2\0").is_ok() };
    let other = unsafe { sys::culib().get::<*const c_void>(b"cuStreamWriteValue32_v2\0").is_ok() };
    assert_eq!((found, other), (false, true));
    settle(&stream);
    drop((context, stream));
}
