package sink

// CSVHeader is the first line of the files of [CSV].
const CSVHeader = csvHeader

// AppendCSV appends the event's row of a [CSV], newline included, to b: for
// programs that write such rows elsewhere than to a file.
func AppendCSV(b []byte, e *Event) []byte { return appendRow(b, e) }
