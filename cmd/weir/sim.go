package main

type simCmd struct {
	List    simListCmd    `cmd:"" help:"List the scenarios that come with this program."`
	Show    simShowCmd    `cmd:"" help:"Print the file of a scenario that comes with this program."`
	Run     simRunCmd     `cmd:"" help:"Play a scenario and measure it."`
	Compare simCompareCmd `cmd:"" help:"Play scenarios under several policies and put them side by side."`
}
