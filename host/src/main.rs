fn main() {
    println!("{}", env!("RECOLLEX_MEMORY_COMPONENT"));
}
