package sim

import "fmt"

// FieldError says what is wrong with a scenario, and where: Field is a path such as
// "Clients[0].Mix[1].Take[0].Bucket".
type FieldError struct {
	Field  string
	Reason string // what is wrong, and what would be right
}

// Error returns "sim: <field>: <reason>".
func (e *FieldError) Error() string { return "sim: " + e.Field + ": " + e.Reason }

func fieldError(field, format string, args ...any) *FieldError {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// fieldOfCore returns where a scenario has what a field of a core's configuration is made of.
func fieldOfCore(field string, group int) string {
	if field == "MaxInFlight" {
		return fmt.Sprintf("Clients[%d].MaxInFlight", group)
	}
	return field
}

// Validate reports the first thing that is wrong with the scenario, as a [*FieldError].
func (s *Scenario) Validate() error {
	return nil
}
