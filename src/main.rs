//! Nothing but the door.

fn main() -> std::process::ExitCode {
    toposcope::cli::main()
}
