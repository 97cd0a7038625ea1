// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// maxCauses limits the number of lines for different causes.
const maxCauses = 8

// sum merges notices of one kind into one notice per cause. If more is set, the text states
// that other subjects were reported before.
func sum(list []Notice, more bool) []Notice {
	var causes []string
	groups := make(map[string][]Notice)
	for _, n := range list {
		cause := n.cause()
		if groups[cause] == nil {
			if len(causes) == maxCauses {
				cause = causes[maxCauses-1]
			} else {
				causes = append(causes, cause)
			}
		}
		groups[cause] = append(groups[cause], n)
	}
	sums := make([]Notice, len(causes))
	for i, cause := range causes {
		sums[i] = merge(groups[cause], cause, more)
	}
	return sums
}

// merge merges several notices into one, whose text is true of all of them.
func merge(list []Notice, cause string, more bool) Notice {
	slices.SortFunc(list, func(a, b Notice) int { return strings.Compare(a.Path, b.Path) })
	first, last := list[0], list[len(list)-1]
	if len(list) == 1 {
		return first
	}
	what, err := first.Kind.subjects(), first.Err
	if more {
		what = "more " + what
	}
	level, again, mixed, sameErr := slog.LevelInfo, 0, false, true
	texts := make([]string, len(list))
	pod, container := first.Pod, first.Container
	for i, n := range list {
		texts[i] = n.Text
		sameErr = sameErr && n.reason() == first.reason()
		level = max(level, n.Level)
		again += n.Again
		mixed = mixed || n.cause() != cause
		if n.Pod != pod {
			pod = ""
		}
		if n.Container != container {
			container = ""
		}
	}
	var text string
	switch {
	case mixed:
		text = "several causes, the first: " + first.Text
	case sameErr:
		text = ranges(texts)
	default:
		text, err = ranges(texts), fmt.Errorf("the first: %w", err)
	}
	return Notice{
		Kind: first.Kind, Level: level, Err: err, Again: again, Pod: pod, Container: container,
		Text: fmt.Sprintf("%d %s, %s to %s: %s", len(list), what, readable(first.Path), readable(last.Path), text),
	}
}

// cause returns a key that is equal for notices of one kind with the same cause. It ignores
// the subject, and numbers such as positions and sizes.
func (n Notice) cause() string { return withoutNumbers(n.Text) + "\x01" + withoutNumbers(n.reason()) }

// reason returns the text of the error without the subject.
func (n Notice) reason() string {
	if n.Err == nil {
		return ""
	}
	return strings.ReplaceAll(n.Err.Error(), n.Path, "")
}
