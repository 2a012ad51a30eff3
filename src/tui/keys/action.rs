/// Where an action's keys count. A key may mean one thing in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// on every tab, unless the tab has its own use for the key
    Everywhere,
    /// the Sweep tab
    Sweep,
    /// the Matrix tab
    Matrix,
    /// the Fits tab
    Fits,
    /// the Fans tab
    Fans,
    /// the Findings tab
    Findings,
    /// the Topology tab
    Topology,
    /// the Replay tab
    Replay,
    /// a recorded session, with its time slider
    Recorded,
}

impl Context {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Sweep => "sweep",
            Self::Matrix => "matrix",
            Self::Fits => "fits",
            Self::Fans => "fans",
            Self::Findings => "findings",
            Self::Topology => "topology",
            Self::Replay => "replay",
            Self::Recorded => "recorded",
        }
    }
}

macro_rules! actions {
    ($($variant:ident $name:literal $context:ident $doc:literal)*) => {
        /// Everything that a key or the palette can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action { $(#[doc = $doc] $variant,)* }

        impl Action {
            /// Every action, in the order of the help page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in the key file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One sentence for the help page.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }

            /// Where its keys count.
            pub const fn context(self) -> Context {
                match self { $(Self::$variant => Context::$context,)* }
            }

            /// The action of a name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

// variant, name in the key file, context, sentence for the help page
actions! {
    Up "up" Everywhere "Move up"
    Down "down" Everywhere "Move down"
    Left "left" Everywhere "Move left"
    Right "right" Everywhere "Move right"
    PageUp "page_up" Everywhere "Move up by a page or a host"
    PageDown "page_down" Everywhere "Move down by a page or a host"
    Home "home" Everywhere "Go to the beginning"
    End "end" Everywhere "Go to the end"
    NextTab "next_tab" Everywhere "Next tab"
    PrevTab "prev_tab" Everywhere "Previous tab"
    Tab1 "tab_1" Everywhere "Tab Topology"
    Tab2 "tab_2" Everywhere "Tab Sweep"
    Tab3 "tab_3" Everywhere "Tab Matrix"
    Tab4 "tab_4" Everywhere "Tab Fits"
    Tab5 "tab_5" Everywhere "Tab Fans"
    Tab6 "tab_6" Everywhere "Tab Findings"
    Tab7 "tab_7" Everywhere "Tab Replay"
    Tab8 "tab_8" Everywhere "Tab Session"
    NextSize "next_size" Everywhere "Next larger message size"
    PrevSize "prev_size" Everywhere "Next smaller message size"
    PauseContinue "pause_continue" Everywhere "Pause the sweep, or continue it"
    Abort "abort" Everywhere "Abort the sweep; what is measured stays"
    Cancel "cancel" Everywhere "Close what is open, or drop the selection"
    NextTheme "next_theme" Everywhere "Next theme"
    Redraw "redraw" Everywhere "Draw everything again"
    SavePicture "save_picture" Everywhere "Save this screen as a picture, SVG and PNG"
    WriteReport "write_report" Everywhere "Write the report, HTML and Markdown"
    ReleaseMouse "release_mouse" Everywhere "Give the mouse back to the terminal, or take it again"
    Help "help" Everywhere "Show or hide this page"
    Quit "quit" Everywhere "Leave"
    Palette "palette" Everywhere "All actions by name, and commands"
    Sessions "sessions" Everywhere "Recorded sessions: open, compare, delete"
    Undo "undo" Everywhere "Take the last change of the view back"
    Redo "redo" Everywhere "Make it again"
    CopyFacts "copy_facts" Everywhere "Copy what is told here to the clipboard"
    StartSweep "start_sweep" Sweep "Start the sweep"
    Toggle "toggle" Sweep "Switch on or off, or take the next choice"
    Increase "increase" Sweep "One more"
    Decrease "decrease" Sweep "One less"
    NextMetric "next_metric" Matrix "Next metric"
    NextPattern "next_pattern" Matrix "Peer, duplex, or copies between hosts and GPUs"
    NextGrouping "next_grouping" Matrix "Rule off by host, by NUMA node or by switch"
    Transpose "transpose" Matrix "Exchange rows and columns"
    ZoomIn "zoom_in" Matrix "Look closer: a pair of racks, of hosts, digits"
    ZoomOut "zoom_out" Matrix "Look at more again"
    NextReduce "next_reduce" Matrix "What stands for a block: worst, min, max or mean"
    NextOrder "next_order" Matrix "Order by rank, by topology, or slowest first"
    FindPair "find_pair" Matrix "Go to a rank, a host or a pair: 12, host03, 12:40"
    Zoom "zoom" Matrix "Fit all, one pixel a pair, or digits"
    NextSuspect "next_suspect" Matrix "Go to the next pair that stands out"
    SamplesUp "samples_up" Everywhere "Samples or facts: scroll up"
    SamplesDown "samples_down" Everywhere "Samples or facts: scroll down"
    ShowFinding "show_finding" Matrix "Go to the finding that this pair belongs to"
    Select "select" Matrix "Start a block, or end it"
    Remeasure "remeasure" Matrix "Measure this cell again"
    RemeasureBlock "remeasure_block" Matrix "Measure the selected block again"
    SortColumn "sort_column" Fits "Sort by the next column"
    SortReverse "sort_reverse" Fits "Reverse the order"
    Filter "filter" Fits "Type what to show: a kind, a path, a rank, 0→1"
    OtherDirection "other_direction" Fans "Fans into a root, or out of it"
    RunTest "run_test" Findings "Run the test that tells the causes apart"
    ShowCells "show_cells" Findings "Go to the Matrix, the finding's pairs marked"
    ShowHop "show_hop" Findings "Go to the Topology, the finding's link marked"
    ShowChanges "show_changes" Findings "What changed since the other session, or the findings"
    ShowSilenced "show_silenced" Findings "Alarms that were held back and why, or the findings"
    Fold "fold" Topology "Fold; on a device, the worst pair of its rank"
    NextFault "next_fault" Topology "Go to the next device at fault, or of a slow rank"
    OtherSight "other_sight" Topology "Route of the pair, or path classes of the host"
    RouteFrom "route_from" Topology "The pair begins at the rank here"
    RouteTo "route_to" Topology "The pair ends at the rank here"
    TurnRoute "turn_route" Topology "The pair the other way round"
    Find "find" Topology "Find a rank, a host or a device"
    ReplayPlay "replay_play" Replay "Play the plan, or stop"
    ReplayBack "replay_back" Replay "To where a flow last began or ended"
    ReplayForward "replay_forward" Replay "To where a flow next begins or ends"
    ReplayFaster "replay_faster" Replay "Play the plan faster"
    ReplaySlower "replay_slower" Replay "Play the plan slower"
    ShowBottleneck "show_bottleneck" Replay "Go to where the bottleneck is fullest"
    Stretch "stretch" Replay "Stretch the time around the play head"
    Shrink "shrink" Replay "Show more of the time"
    NextPlan "next_plan" Replay "Next plan"
    ComparePlans "compare_plans" Replay "Another plan beside this one, or none"
    LightLinks "light_links" Replay "Go to the Topology, the links lit that bytes pass"
    ShowStrategies "show_strategies" Replay "Strategies of this machine, or the plans"
    Choose "choose" Replay "Change this line, or look at this strategy"
    ExecutePlan "execute_plan" Replay "Run the plan on the ranks, and compare"
    LoadPlan "load_plan" Replay "Read a plan's file"
    PlayPause "play_pause" Recorded "Play, or stop"
    StepBack "step_back" Recorded "To before the last probe"
    StepForward "step_forward" Recorded "To after the next probe"
    SeekBack "seek_back" Recorded "A twentieth of the session back"
    SeekForward "seek_forward" Recorded "A twentieth of the session forward"
    Faster "faster" Recorded "Play faster"
    Slower "slower" Recorded "Play slower"
}
