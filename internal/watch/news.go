package watch

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxSingle is how many notices of a kind are told one by one between two looks
// through the directories. More make one, or one for each cause: nobody reads 64
// lines that say the same, and in a directory that anybody writes to, anybody
// could fill the log.
const maxSingle = 8

// keptFor bounds how long notices wait for a look through the directories: one
// of them may hang.
const keptFor = 2 * rescanEvery

// news is what is still to be told of single rings and files.
type news struct {
	mu     sync.Mutex // no other lock is taken under it
	kept   []Notice
	judged int          // how many of kept are of kinds of which there are many
	kinds  map[Kind]int // how many of each are in kept
	told   map[Kind]int // one by one, since the last look through the directories
	since  atomic.Int64 // when the oldest of kept came, in Unix nanoseconds; 0 if there is none
}

func (s *news) init() { s.kinds, s.told = make(map[Kind]int), make(map[Kind]int) }

// report tells something at once, unless enough of its kind was told of other
// rings: then it is summed up after the next look through the directories.
func (w *Watcher) report(n Notice) {
	if n.single() && !w.news.admit(n.Kind) {
		w.note(n)
		return
	}
	w.cfg.Report(n)
}

// note keeps what a look at files has found until the look is over, so that
// what it found often makes one notice.
func (w *Watcher) note(n Notice) { w.news.keep(n, w.cfg.Now()) }

// flush tells what was noted, as far as it is little.
func (w *Watcher) flush() { w.tell(w.news.few()) }

// flushAll tells all that was noted, after a look through the directories.
func (w *Watcher) flushAll() { w.tell(w.news.all()) }

// flushOld is flushAll where that look takes too long. To sum up a crowd takes
// longer than a drain may.
func (w *Watcher) flushOld(now time.Time) {
	if at := w.news.since.Load(); at != 0 && since(at, now) >= keptFor && w.news.since.CompareAndSwap(at, 0) {
		w.loops.Go(w.flushAll)
	}
}

func (w *Watcher) tell(list []Notice) {
	for _, n := range list {
		w.cfg.Report(n)
	}
}

// admit says whether one more notice of a kind may be told by itself.
func (s *news) admit(k Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[k] >= maxSingle {
		return false
	}
	s.told[k]++
	return true
}

func (s *news) keep(n Notice, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, n)
	s.kinds[n.Kind]++
	s.since.CompareAndSwap(0, now.UnixNano())
}

// few takes the notices of those kinds of which there are few.
func (s *news) few() (list []Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	many := s.kept[:s.judged]
	for _, n := range s.kept[s.judged:] {
		if s.told[n.Kind]+s.kinds[n.Kind] <= maxSingle {
			list = append(list, n)
		} else {
			many = append(many, n)
		}
	}
	for _, n := range list {
		s.kinds[n.Kind]--
		s.told[n.Kind]++
	}
	s.kept, s.judged = many, len(many)
	if len(many) == 0 {
		s.since.Store(0)
	}
	return list
}

// all takes everything, with those kinds summed up of which there are many.
func (s *news) all() []Notice {
	list, crowds, told := s.take()
	for k := range lastKind + 1 {
		list = append(list, sum(crowds[k], told[k] > 0)...)
	}
	return list
}

// take takes everything: the notices of kinds of which there are few, those of
// which there are many, and how many of each were told already. It is short, as
// the drain loop may want to report something.
func (s *news) take() (few []Notice, crowds map[Kind][]Notice, told map[Kind]int) {
	s.mu.Lock()
	kept, kinds := s.kept, s.kinds
	told = s.told
	s.kept, s.judged = nil, 0
	s.init()
	s.since.Store(0)
	s.mu.Unlock()
	crowds = make(map[Kind][]Notice)
	for _, n := range kept {
		if told[n.Kind]+kinds[n.Kind] <= maxSingle {
			few = append(few, n)
		} else {
			crowds[n.Kind] = append(crowds[n.Kind], n)
		}
	}
	return few, crowds, told
}
