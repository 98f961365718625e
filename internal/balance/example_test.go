package balance_test

import (
	"fmt"

	"github.com/chert-http/chert/internal/balance"
)

func Example() {
	a, b, c := balance.NewServer("10.0.0.1:8080"), balance.NewServer("10.0.0.2:8080"), balance.NewServer("10.0.0.3:8080")
	set, err := balance.NewSet([]balance.Member{
		{Server: a, Weight: 2},
		{Server: b, Weight: 1},
		{Server: c, Weight: 1, Backup: true},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		s := set.Acquire(&balance.Request{})
		fmt.Println(s.Addr())
		s.Release()
	}
	a.SetState(balance.Down, 0)
	b.SetState(balance.Down, 0)
	fmt.Println(set.Acquire(&balance.Request{}).Addr())
	// Output:
	// 10.0.0.1:8080
	// 10.0.0.2:8080
	// 10.0.0.1:8080
	// 10.0.0.3:8080
}

func ExampleMoved() {
	var list []balance.Member
	for i := range 10 {
		list = append(list, balance.Member{Server: balance.NewServer(fmt.Sprintf("10.0.0.%d:8080", i)), Weight: 1})
	}
	o := &balance.Options{Policy: balance.Hash}
	before, _ := balance.NewSet(list, o)
	after, _ := balance.NewSet(list[1:], o)
	fmt.Printf("%.0f %% of keys move\n", 100*balance.Moved(before, after))
	// Output: 10 % of keys move
}
