package apikey_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/weirhq/weir/apikey"
)

func ExampleNew() {
	key, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Printing a key is safe. Encode gives the text to hand out.
	fmt.Println(key, len(key.Encode()))
	// Output: rl-aes(key_id=7) 85
}

func ExampleParse() {
	key, err := apikey.Parse("rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, %v, %#x, %d buckets\n", key, key.Auth(), key.ID(), key.Quotas().RateBuckets)

	_, err = apikey.Parse("rl-none1qyyqwps9qspsyq2sk8e0sfdp3yy")
	fmt.Println(err)
	// Output:
	// rl-none(key_id=72623859790382856), none, 0x102030405060708, 65536 buckets
	// apikey: invalid key: the checksum is wrong: a character was changed, lost or added
}

func ExampleParseAny() {
	const old = "rl-aes1agpsqqqqqqqqqqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqqqqzqqqqsqqqqqsqqqyqqqqqqkqzqqq2waht7"
	_, err := apikey.Parse(old)
	fmt.Println(errors.Is(err, apikey.ErrLegacy))

	key, err := apikey.ParseAny(old)
	fmt.Println(key, err)
	// Output:
	// true
	// rl-aes(key_id=1002, legacy) <nil>
}

func ExampleQuotas_Round() {
	q := apikey.DefaultQuotas()
	q.RateBuckets = 100_000
	fmt.Println(q.Validate())

	q, notes := q.Round()
	fmt.Println(q.RateBuckets, notes)
	// Output:
	// apikey: quota RateBuckets: 100000 is not a power of two from 1 to 16777216, which is all that a key can hold
	// 131072 [RateBuckets: 100000 rounded to 131072]
}

func ExampleKey_MarshalJSON() {
	key, err := apikey.Parse("rl-cookie1qyqsqqqqqqqqqqqpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqqqzqqfs0x84")
	if err != nil {
		fmt.Println(err)
		return
	}
	config := struct {
		Name string
		Key  apikey.Key
	}{"shop", key}
	if err := json.NewEncoder(os.Stdout).Encode(config); err != nil {
		fmt.Println(err)
	}
	// Output: {"Name":"shop","Key":"rl-cookie(key_id=1)"}
}
