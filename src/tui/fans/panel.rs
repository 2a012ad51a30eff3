use super::Fans;
use crate::sample::Pattern;
use crate::tui::draw::HitMap;
use crate::tui::keys::Action;
use crate::tui::state::FansPanel;

/// Entries that a page is.
const PAGE: usize = 8;

impl FansPanel {
    /// Do what a key asks for.
    pub fn update(&mut self, action: Action, fans: &Fans, hits: &HitMap) {
        let direction = fans.direction(self);
        let last = fans.entries(direction).saturating_sub(1);
        let entry = self.entry.min(last);
        match action {
            Action::Up => self.go(entry.saturating_sub(1), fans),
            Action::Down => self.go((entry + 1).min(last), fans),
            Action::PageUp => self.go(entry.saturating_sub(PAGE), fans),
            Action::PageDown => self.go((entry + PAGE).min(last), fans),
            Action::Home => self.go(0, fans),
            Action::End => self.go(last, fans),
            Action::Left | Action::Right => {
                self.look_at(self.fan, fans);
                let to = if action == Action::Right { self.fan + 1 } else { self.fan.saturating_sub(1) };
                self.look_at(to, fans);
            }
            Action::NextSize | Action::PrevSize => {
                let at = fans.sizes.iter().position(|&size| size == fans.bytes).unwrap_or(0);
                let to = if action == Action::NextSize { (at + 1).min(fans.sizes.len().saturating_sub(1)) } else { at.saturating_sub(1) };
                self.size = fans.sizes.get(to).copied();
            }
            Action::OtherDirection => {
                let other = if direction == Pattern::FanIn { Pattern::FanOut } else { Pattern::FanIn };
                // The same root at the same width, if the other way has it.
                let here = fans.way(direction).roots.get(entry);
                let there = here.and_then(|root| fans.way(other).roots.binary_search_by_key(&root.rank, |known| known.rank).ok());
                let width = self.width(fans);
                self.direction = Some(other);
                self.entry = there.unwrap_or(0);
                self.keep(width, fans);
            }
            Action::SamplesUp => self.scroll = self.scroll.saturating_sub(1),
            Action::SamplesDown => self.scroll = (self.scroll + 1).min(hits.peers.map_or(0, |(_, most)| most)),
            _ => {}
        }
    }

    /// Choose an entry; of a root, the fan as wide as the one before.
    pub fn go(&mut self, entry: usize, fans: &Fans) {
        let width = self.width(fans);
        self.entry = entry;
        self.keep(width, fans);
    }

    /// Choose one of the root's fans.
    pub fn look_at(&mut self, fan: usize, fans: &Fans) {
        let root = fans.way(fans.direction(self)).roots.get(self.entry);
        self.fan = fan.min(root.map_or(0, |root| root.fans.len().saturating_sub(1)));
        self.scroll = 0;
    }

    fn width(&self, fans: &Fans) -> Option<usize> {
        let fans = &fans.way(fans.direction(self)).roots.get(self.entry)?.fans;
        Some(fans.get(self.fan.min(fans.len().saturating_sub(1)))?.width())
    }

    fn keep(&mut self, width: Option<usize>, fans: &Fans) {
        self.scroll = 0;
        let Some(root) = fans.way(fans.direction(self)).roots.get(self.entry) else { return };
        if let Some(fan) = root.fans.iter().position(|fan| Some(fan.width()) == width) {
            self.fan = fan;
        }
        self.fan = self.fan.min(root.fans.len().saturating_sub(1));
    }
}
