package session

import "fmt"

// ReadRows calls fn for each packet of the session whose CSV is at path, in the
// order of the file: for analyses that a [Report] doesn't have. A part of a row
// at the end of the file is left out.
//
// The errors are ErrFormat for a file that isn't a session's, and those of
// reading.
func ReadRows(path string, fn func(Row)) error {
	if _, err := replayFile(path, newReadConfig(nil), fn); err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	return nil
}
