// Package scenario reads the scenarios of the simulator from YAML, and has the library that
// ships with Weir. docs/scenarios.md is the schema, with every field.
//
// Every mistake is told with its place, "file:line:column: what is wrong; what would be
// right", be it one of form, which this package finds, or one of sense, which
// [sim.Scenario.Validate] does.
//
// A file may have variants: the same scenario with some of its fields changed. One is named
// behind the file or the scenario, as in "overload/min-off".
package scenario
