// Package watch keeps the totals of all agents whose rings are in some
// directories: it finds the rings, drains them on the agents' run interval,
// follows them over restarts, and retires what is left of agents that are
// gone.
//
// Two loops run apart, so that a slow directory never holds up a drain. The
// scan loop finds files, by inotify and by looking each few seconds, and opens
// them. The drain loop goes round the open rings at least twice per run
// interval, and faster while one of them is found more than half full. Whoever
// exports the totals does so at a pace of its own, by [Watcher.Agents].
//
// # The life of a ring, as a watcher sees it
//
//   - A file that can't be opened is tried again: soon where an agent is about
//     to make it a ring, later and later otherwise, and at once when the file
//     changes, unless it does so all the time. Each cause is reported once.
//   - An agent that starts anew on its ring's file, with any capacity and
//     layout, goes on with the same totals.
//   - A file that was removed is drained on, as its agent writes on into it. A
//     new file of the same name takes its place. A file that was renamed goes on
//     under the name that its agent has.
//   - A ring without an event for [Config.StaleAfter] is closed and forgotten
//     if no process has it open for writing any more; see
//     [ringbuf.Unattended]. Where that can't be told, it is drained on, but not
//     reported until the next event.
//
// Nothing is ever created, written to, or removed in the directories, but for
// the read positions of the rings in mode [ringbuf.Consume].
package watch
