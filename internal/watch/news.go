package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// maxSingle is how many files of a kind are reported one by one between two
// looks through the directories. More make one notice: in a directory that
// anybody writes to, anybody could fill the log.
const maxSingle = 16

// news is what was found since it was last reported.
type news struct {
	opened  []*Agent
	refused []Notice // Path and Err only
	told    int      // files, since the last look through the directories
}

// flush reports the news of single files, as long as they are few.
func (w *Watcher) flush() {
	n := len(w.news.opened) + len(w.news.refused)
	if n > 0 && w.news.told+n <= maxSingle {
		w.news.told += n
		w.tell()
	}
}

// flushAll reports the news after a look through the directories.
func (w *Watcher) flushAll() {
	w.news.told = 0
	w.tell()
}

func (w *Watcher) tell() {
	news := w.news
	w.news.opened, w.news.refused = nil, nil
	w.reportOpened(news.opened)
	var inert, refused []Notice
	for _, n := range news.refused {
		if isInert(n.Err) {
			inert = append(inert, n)
		} else {
			refused = append(refused, n)
		}
	}
	w.reportRefused(inert, NotRings, slog.LevelDebug, "file isn't a ring", "files aren't rings")
	w.reportRefused(refused, RingRefused, slog.LevelWarn, "ring can't be opened", "rings can't be opened")
}

func (w *Watcher) reportOpened(agents []*Agent) {
	if len(agents) > maxSingle {
		slices.SortFunc(agents, func(a, b *Agent) int { return strings.Compare(a.Path, b.Path) })
		w.report(Notice{
			Kind: RingOpened, Level: slog.LevelInfo, Path: agents[0].Dir,
			Text: fmt.Sprintf("%d rings opened, %s to %s", len(agents), agents[0].Name, agents[len(agents)-1].Name),
		})
		return
	}
	for _, a := range agents {
		a.mu.Lock()
		text := fmt.Sprintf("ring opened (layout %v, %d slots)", a.layout, a.tally.Capacity())
		a.mu.Unlock()
		w.report(Notice{Kind: RingOpened, Level: slog.LevelInfo, Path: a.Path, Text: text})
	}
}

// reportRefused reports files one by one, or many as one, with the first of
// them as an example.
func (w *Watcher) reportRefused(list []Notice, kind Kind, level slog.Level, one, many string) {
	if len(list) > maxSingle {
		w.report(Notice{
			Kind: kind, Level: max(level, slog.LevelInfo), Path: "", Err: list[0].Err,
			Text: fmt.Sprintf("%d %s; exclude them, or give agents a directory of their own; the first", len(list), many),
		})
		return
	}
	for _, n := range list {
		w.report(Notice{Kind: kind, Level: level, Path: n.Path, Text: one, Err: n.Err})
	}
}

// limitReached reports, once, that there are more rings than allowed.
func (w *Watcher) limitReached() {
	if w.full {
		return
	}
	w.full = true
	w.report(Notice{
		Kind: RingLimit, Level: slog.LevelError,
		Text: fmt.Sprintf("there are more than %d rings; the others are not read: raise max_rings, or name fewer in include", w.cfg.MaxRings),
	})
}
