package watch

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/fsnotify/fsnotify"
)

// notifier tells of changes in directories. Where the system has none to give,
// it is nil, and silent.
type notifier struct {
	w      *fsnotify.Watcher
	failed bool // to watch a directory, and it was said
}

func (w *Watcher) openNotifier() *notifier {
	n, err := fsnotify.NewBufferedWatcher(maxWanted)
	if err != nil {
		w.notifyFailed(err)
		return nil
	}
	return &notifier{w: n}
}

// notifyFailed reports that inotify is out of order.
func (w *Watcher) notifyFailed(err error) {
	w.report(Notice{
		Kind: NotifyOff, Level: slog.LevelWarn, Err: err,
		Text: "inotify doesn't work, so that new rings are found within " + rescanEvery.String() +
			" only; is fs.inotify.max_user_instances or max_user_watches too low?",
	})
}

// notifyOf asks for news of a directory. One that is watched already is no
// error: each scan asks again, as a directory may have been made anew.
func (w *Watcher) notifyOf(n *notifier, dir string) {
	if n == nil {
		return
	}
	err := n.w.Add(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !n.failed {
		n.failed = true
		w.notifyFailed(err)
	}
}

func (n *notifier) events() <-chan fsnotify.Event {
	if n == nil {
		return nil
	}
	return n.w.Events
}

func (n *notifier) errors() <-chan error {
	if n == nil {
		return nil
	}
	return n.w.Errors
}

func (n *notifier) close() {
	if n != nil {
		_ = n.w.Close()
	}
}
