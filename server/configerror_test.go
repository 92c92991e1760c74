package server

import (
	"errors"
	"reflect"
	"testing"
)

// Each of the fields that a ConfigError names is one of Config's.
func TestConfigErrorsNameFields(t *testing.T) {
	config := reflect.TypeFor[Config]()
	for field := range fieldNames {
		if _, ok := config.FieldByName(field); !ok {
			t.Errorf("Config has no field %s", field)
		}
	}
	for field, c := range map[string]Config{
		"Listen": {}, "Skew": {Listen: []string{"127.0.0.1:0"}, Skew: -1}, "DNS": {Listen: []string{"127.0.0.1:0"}, DNS: "127.0.0.1:0"},
		"Zone": {Listen: []string{"127.0.0.1:0"}, Zone: "rl.test"}, "TTL": {Listen: []string{"127.0.0.1:0"}, TTL: 1},
		"MemoryLimit": {Listen: []string{"127.0.0.1:0"}, MemoryLimit: -1}, "Tenants": {Listen: []string{"127.0.0.1:0"}},
	} {
		_, err := New(c)
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("the error for %s is %v", field, err)
		}
	}
}
