use super::{Book, Column};
use crate::tui::draw::HitMap;
use crate::tui::keys::Action;
use crate::tui::state::FitsPanel;
use crate::tui::typing::Typing;

impl FitsPanel {
    /// Do what a key asks for.
    pub fn update(&mut self, action: Action, book: &Book, hits: &HitMap) {
        let last = book.shown().saturating_sub(1);
        let page = hits.fit_rows.len().max(1);
        match action {
            Action::Up => self.go(self.at.saturating_sub(1)),
            Action::Down => self.go((self.at + 1).min(last)),
            Action::PageUp => self.go(self.at.saturating_sub(page)),
            Action::PageDown => self.go((self.at + page).min(last)),
            Action::Home => self.go(0),
            Action::End => self.go(last),
            Action::SortColumn => self.sort(self.column.next()),
            Action::SortReverse => self.descending = !self.descending,
            Action::Filter => self.typing = Some(Typing::new(&self.filter)),
            Action::SamplesUp => self.scroll = self.scroll.saturating_sub(1),
            Action::SamplesDown => self.scroll = (self.scroll + 1).min(hits.residuals.map_or(0, |(_, most)| most)),
            _ => {}
        }
    }

    /// Put the cursor on a row.
    pub const fn go(&mut self, at: usize) {
        self.at = at;
        self.scroll = 0;
    }

    /// Sort by a column; by the same one again, the other way round.
    pub fn sort(&mut self, column: Column) {
        self.descending = if column == self.column { !self.descending } else { column.largest_first() };
        self.column = column;
    }

    /// Take what is typed so far as the filter.
    pub fn narrow(&mut self) {
        if let Some(typing) = &self.typing {
            self.filter = typing.text();
        }
    }
}
