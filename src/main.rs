fn main() {
    toposcope::cli::tmp::main();
}
