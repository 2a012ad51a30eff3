//! NVIDIA's libraries, loaded when they are first needed.

use libloading::Library;

/// Why none is loaded, in the loader's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unloaded {
    /// it finds none
    Absent(String),
    /// it finds one that cannot be loaded: empty, another machine's, without what it needs
    Broken(String),
}

/// Load the first of these files that can be. Runs its initialisers: never inside a timed region.
pub(super) fn load<'a>(names: &[&'a str]) -> Result<(&'a str, Library), Unloaded> {
    let mut absent = String::new();
    for &name in names {
        // SAFETY: loads NVIDIA's library and runs its initialisers, which is what is asked for.
        #[allow(unsafe_code, reason = "loading a library runs its code")]
        let loaded = unsafe { Library::new(name) };
        match loaded.map_err(|error| reason(&error)) {
            Ok(library) => return Ok((name, library)),
            // Of what the library itself needs it tells the other name.
            Err(why) if !(why.contains(name) && why.contains("No such file")) => return Err(Unloaded::Broken(why)),
            Err(why) if absent.is_empty() => absent = why,
            Err(_) => {}
        }
    }
    Err(Unloaded::Absent(absent))
}

fn reason(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    crate::units::plain(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_and_what_is_no_library_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libcuda.so.1");
        let name = file.to_str().unwrap();
        let why = |names: &[&str]| load(names).map(|(name, _)| name.to_owned()).unwrap_err();
        assert!(matches!(why(&["libno-such.so.7", name]), Unloaded::Absent(said) if said.contains("libno-such.so.7")));
        std::fs::write(&file, "").unwrap();
        assert!(matches!(why(&["libno-such.so.7", name]), Unloaded::Broken(said) if said.contains("file too short")));
        std::fs::write(&file, "no library, whatever its name says, and as long as the head of one would be: 64 bytes and more").unwrap();
        assert!(matches!(why(&[name]), Unloaded::Broken(said) if said.contains("invalid ELF header")));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(matches!(why(&[name]), Unloaded::Broken(_)), "a folder, as containers leave them");
        assert_eq!(load(&["libno-such.so.7", "libc.so.6"]).unwrap().0, "libc.so.6");
    }
}
