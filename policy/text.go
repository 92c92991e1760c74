package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fieldNames are the keys of the text form, in the order in which they are
// written.
const fieldNames = "unit, replays, gap, preference, final, final-preference, completion-delivery, delivery-delay"

// Parse reads a policy's text form: blank-separated words, of which the first
// may be a preset's name ("default" when there is none) and the others change
// single fields:
//
//	strict-oldest unit=5ms replays=2 gap=exponential:1:2:8
//
// The fields are unit (a duration with its unit, as time.ParseDuration has it),
// replays, gap and preference (schedules, see [ParseSchedule]), final and
// final-preference (units), completion-delivery (on or off), and delivery-delay
// (units). A policy that is returned compiles. The error is a [*FieldError] where a field is wrong.
func Parse(text string) (Policy, error) {
	words := strings.Fields(text)
	p := Default()
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		preset, ok := Preset(words[0])
		if !ok {
			return Policy{}, fmt.Errorf("policy: %q is no preset; there are %s", words[0], strings.Join(PresetNames(), ", "))
		}
		p, words = preset, words[1:]
	}
	seen := make(map[string]bool, len(words))
	for _, word := range words {
		field, value, ok := strings.Cut(word, "=")
		if !ok {
			return Policy{}, fmt.Errorf("policy: %q is not of the form field=value; a preset comes first and alone", word)
		}
		if seen[field] {
			return Policy{}, fieldError(field, "it is set twice")
		}
		seen[field] = true
		if err := p.set(field, value); err != nil {
			return Policy{}, err
		}
	}
	if _, err := p.Compile(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// String returns the text form with every field, but without a delivery-delay of
// 0. [Parse] reads it back to an equal policy if the policy compiles.
func (p Policy) String() string {
	delivery := "off"
	if p.CompletionDelivery {
		delivery = "on"
	}
	text := fmt.Sprintf("unit=%v replays=%d gap=%v preference=%v final=%d final-preference=%d completion-delivery=%s",
		p.Unit, p.Replays, p.Gap, p.Preference, p.FinalReceive, p.FinalPreference, delivery)
	if p.DeliveryDelay == 0 {
		return text
	}
	return text + " delivery-delay=" + strconv.FormatUint(uint64(p.DeliveryDelay), 10)
}

func (p *Policy) set(field, value string) (err error) {
	switch field {
	case "unit":
		p.Unit, err = time.ParseDuration(value)
		if err != nil {
			return fieldError(field, "%q is no duration such as 20ms", value)
		}
	case "replays":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return fieldError(field, "%q is no decimal number from 0 to %d", value, maxReplays)
		}
		p.Replays = int(n)
	case "gap":
		p.Gap, err = parseScheduleField(field, value)
	case "preference":
		p.Preference, err = parseScheduleField(field, value)
	case "final":
		p.FinalReceive, err = parseUnitsField(field, value)
	case "final-preference":
		p.FinalPreference, err = parseUnitsField(field, value)
	case "completion-delivery":
		if value != "on" && value != "off" {
			return fieldError(field, "%q is neither on nor off", value)
		}
		p.CompletionDelivery = value == "on"
	case "delivery-delay":
		p.DeliveryDelay, err = parseUnitsField(field, value)
	default:
		return fmt.Errorf("policy: %q is no field; there are %s", field, fieldNames)
	}
	return err
}

func parseScheduleField(field, value string) (Schedule, error) {
	s, err := ParseSchedule(value)
	if err != nil {
		return Schedule{}, fieldError(field, "%s", strings.TrimPrefix(err.Error(), "policy: "))
	}
	return s, nil
}

func parseUnitsField(field, value string) (uint32, error) {
	v, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return 0, fieldError(field, "%q is no decimal number from 0 to %d", value, uint32(math.MaxUint32))
	}
	return uint32(v), nil
}
