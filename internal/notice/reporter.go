// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Any process that can write to a ring can break it repeatedly. A start on a host with many agents
// must leave room for warnings.
const (
	maxLines = 100 // per minute
	maxWarn  = 90  // lines after which only errors are reported: a container can cause any number of warnings
	maxInfo  = 60  // lines after which only warnings and errors are reported
	maxDebug = 20  // lines after which nothing about debugging is reported
)

// Reporter reports notices when they occur, but drops repetitions: the same text about the same
// path within a minute, and lines beyond the limits of a minute. It is safe for concurrent use.
type Reporter struct {
	report func(Notice)
	now    func() time.Time

	mu         sync.Mutex
	began      time.Time          // when the current minute began
	reported   map[[2]string]bool // paths and texts
	suppressed int
}

// New returns a Reporter that calls report for each line. report must not block, must not call
// the Reporter, and must be safe for concurrent use.
func New(report func(Notice), now func() time.Time) *Reporter {
	return &Reporter{report: report, now: now, began: now(), reported: make(map[[2]string]bool)}
}

// Report reports a notice, unless it is a repetition.
func (r *Reporter) Report(n Notice) {
	r.mu.Lock()
	suppressed := 0
	if now := r.now(); now.Sub(r.began) >= time.Minute {
		suppressed, r.suppressed, r.began = r.suppressed, 0, now
		clear(r.reported)
	}
	limit := maxLines
	if n.Level < slog.LevelInfo {
		limit = maxDebug
	} else if n.Level < slog.LevelWarn {
		limit = maxInfo
	} else if n.Level < slog.LevelError {
		limit = maxWarn
	}
	key := [...]string{n.Path, n.Text}
	admitted := !r.reported[key] && len(r.reported) < limit
	if admitted {
		r.reported[key] = true
	} else if n.Level >= slog.LevelInfo { // others are hidden by default
		r.suppressed++
	}
	r.mu.Unlock()
	r.count(suppressed)
	if admitted {
		r.report(n)
	}
}

// Close reports how many notices were suppressed.
func (r *Reporter) Close() {
	r.mu.Lock()
	suppressed := r.suppressed
	r.suppressed = 0
	r.mu.Unlock()
	r.count(suppressed)
}

func (r *Reporter) count(suppressed int) {
	if suppressed > 0 {
		r.report(Notice{Level: slog.LevelInfo, Text: fmt.Sprintf("%d suppressed: repetitions, or too many lines in a minute", suppressed)})
	}
}
