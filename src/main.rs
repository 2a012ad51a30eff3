use std::env;
use std::process::exit;

use toposcope::launch::guard;

fn main() {
    // The guard comes before everything: it must be there in milliseconds and must not touch MPI.
    if env::args_os().nth(1).is_some_and(|word| word == guard::SUBCOMMAND) {
        exit(guard::serve());
    }
}
