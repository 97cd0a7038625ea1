package lane

// Count is the number of lanes.
const Count = 1 << bits

const bits = 4
