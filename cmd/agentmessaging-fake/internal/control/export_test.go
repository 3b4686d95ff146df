package control

import (
	"maps"
	"slices"
)

// Routes lists method and path of each route, for tests that call all of them.
func Routes() []string { return slices.Sorted(maps.Keys(new(Server).routes())) }
