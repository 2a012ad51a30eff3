mod foreign;
mod lists;
