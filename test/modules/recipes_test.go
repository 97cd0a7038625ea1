package modules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// The Collector for many hosts has all that the slim one has, of the same
// versions: it can take its place.
func TestRecipesAgree(t *testing.T) {
	t.Parallel()
	larger := components(t, "builder-scale.yaml")
	for component := range components(t, "builder-config.yaml") {
		if !larger[component] {
			t.Errorf("builder-scale.yaml has no %s", component)
		}
	}
}

// components are the modules that a recipe names, with their versions.
func components(t *testing.T, recipe string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ringtest.Root(t), recipe))
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if _, component, found := strings.Cut(line, "- gomod: "); found {
			list[strings.TrimSpace(component)] = true
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s names no module", recipe)
	}
	return list
}
