//! The recorded sessions and the theme files, as the screen asks for them: it touches no files itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

use super::files;
use crate::config;
use crate::session::store::shelf;
use crate::tui::{Shelf, ShelfTold, Wish};
use crate::units::plain;

/// A folder of sessions, and a thread that looks into it once something is asked: a home of many machines may be slow.
pub(super) struct Library {
    folder: PathBuf,
    asked: Option<Sender<Wish>>,
    told: Option<Receiver<ShelfTold>>,
}

impl Library {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, asked: None, told: None }
    }

    fn start(&mut self) {
        let ((ask, asked), (tell, told)) = (channel(), channel());
        let folder = self.folder.clone();
        let run = move || {
            for wish in asked {
                for answer in fulfil(&folder, wish) {
                    if tell.send(answer).is_err() {
                        return;
                    }
                }
            }
        };
        // Without the thread the list stays empty; nothing else depends on it.
        if std::thread::Builder::new().name("sessions".to_owned()).spawn(run).is_ok() {
            (self.asked, self.told) = (Some(ask), Some(told));
        }
    }
}

impl Shelf for Library {
    fn ask(&mut self, wish: Wish) {
        if self.asked.is_none() {
            self.start();
        }
        if let Some(asked) = &self.asked {
            let _ = asked.send(wish);
        }
    }

    fn drain(&mut self) -> Vec<ShelfTold> {
        self.told.iter().flat_map(Receiver::try_iter).collect()
    }
}

/// Do it; after a change the list is told again.
fn fulfil(folder: &Path, wish: Wish) -> Vec<ShelfTold> {
    let refused = |error: &dyn std::error::Error| ShelfTold::Refused(plain(&error.to_string()));
    let name = |path: &Path| plain(&path.file_name().unwrap_or_default().to_string_lossy());
    let done = match wish {
        Wish::List => None,
        Wish::Load { folder } => {
            return vec![match files::load(&folder) {
                Ok(model) => ShelfTold::Loaded { name: name(&folder), model: Box::new(model) },
                Err(error) => ShelfTold::Refused(plain(&super::told(&error))),
            }];
        }
        Wish::Rename { folder, name } => Some(match shelf::rename(&folder, &name) {
            Ok(to) => ShelfTold::Done { say: format!("renamed to {name}"), moved: Some((folder.clone(), to)) },
            Err(error) => refused(&error),
        }),
        Wish::Note { folder, text } => Some(match shelf::set_note(&folder, &text) {
            Ok(()) => ShelfTold::Done { say: "noted".to_owned(), moved: None },
            Err(error) => refused(&error),
        }),
        Wish::Delete { folder } => Some(match shelf::delete(&folder) {
            Ok(left) if left.is_empty() => ShelfTold::Done { say: format!("{} deleted", name(&folder)), moved: None },
            Ok(left) => ShelfTold::Done { say: format!("deleted; its folder stays, with {}", left.join(", ")), moved: None },
            Err(error) => refused(&error),
        }),
    };
    let listed = match shelf::list(folder) {
        Ok(entries) => ShelfTold::Listed(entries),
        Err(error) => refused(&error),
    };
    done.into_iter().chain([listed]).collect()
}

/// Theme files with when they were written and how long they are: what tells that one is another now.
fn stamps() -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    let Ok(entries) = fs::read_dir(config::themes()) else { return Vec::new() };
    let mut stamps: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "toml"))
        // Of a link, what it points to.
        .filter_map(|entry| fs::metadata(entry.path()).ok().map(|about| (entry.path(), about.modified().ok(), about.len())))
        .collect();
    stamps.sort();
    stamps
}

/// How often theme files are looked at.
const THEMES: Duration = Duration::from_millis(500);

/// Tells the texts of this person's theme files whenever they have changed. They are looked at by a thread of its own: a home of many
/// machines may be slow, and drawing keeps out of timed regions. It ends with who asks.
pub(super) fn changed_themes() -> impl FnMut() -> Option<BTreeMap<String, String>> + Send {
    let (tell, told) = channel();
    let mut last = stamps();
    let look = move || {
        loop {
            std::thread::sleep(THEMES);
            let now = stamps();
            let changed = now != last;
            last = now;
            if tell.send(changed.then(super::look::themes)).is_err() {
                return;
            }
        }
    };
    // Without the thread themes stay what they are.
    let _ = std::thread::Builder::new().name("themes".to_owned()).spawn(look);
    move || told.try_iter().flatten().last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn wishes_are_fulfilled_in_their_order_by_another_thread() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path().join("one");
        fs::create_dir(&session).unwrap();
        for name in ["header.json", "events.ndjson"] {
            fs::copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sessions/lab-4x4")).join(name), session.join(name)).unwrap();
        }
        let mut library = Library::new(place.path().to_owned());
        assert!(library.drain().is_empty());
        library.ask(Wish::Rename { folder: session.clone(), name: "a/b".into() });
        library.ask(Wish::Rename { folder: session, name: "two".into() });
        library.ask(Wish::Load { folder: place.path().join("two") });
        library.ask(Wish::Delete { folder: place.path().join("two") });
        let (mut told, begun) = (Vec::new(), Instant::now());
        while told.len() < 7 && begun.elapsed() < Duration::from_secs(30) {
            told.extend(library.drain());
            std::thread::yield_now();
        }
        let lists: Vec<usize> =
            told.iter().filter_map(|told| if let ShelfTold::Listed(entries) = told { Some(entries.len()) } else { None }).collect();
        assert_eq!(lists, [1, 1, 0]);
        assert!(matches!(&told[0], ShelfTold::Refused(why) if why.contains("is no name")), "{told:?}");
        assert!(matches!(&told[2], ShelfTold::Done { moved: Some((_, to)), .. } if to.ends_with("two")), "{told:?}");
        assert!(matches!(&told[4], ShelfTold::Loaded { name, model } if name == "two" && model.samples() > 0));
    }
}
