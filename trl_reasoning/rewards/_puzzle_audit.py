"""
Which tasks of reasoning-gym may be scored by the library itself: made by reading every scorer of version 0.1.25.

A scorer is on the list when no text of a model reaches `eval`, `exec` or sympy's parser (which evaluates its text),
when it is bounded for a bounded text, and when a wrong answer cannot get full credit. A task that is not named here,
for instance of a later version, is refused until somebody has read its scorer.
"""

_READ = """
    ab acre advanced_geometry aiw arc_1d arc_agi base_conversion basic_arithmetic bf binary_alternation boxnet
    caesar_cipher calendar_arithmetic chain_sum circuit_logic color_cube_rotation count_bits count_primes
    course_schedule cryptarithm decimal_arithmetic decimal_chain_sum dice emoji_mystery family_relationships
    figlet_font fraction_simplification futoshiki game_of_life gcd graph_color group_anagrams gsm_symbolic
    isomorphic_strings jugs kakurasu knight_swap knights_knaves largest_island lcm leg_counting letter_counting
    letter_jumble list_functions mahjong_puzzle manipulate_matrix maze mini_sudoku modulo_grid needle_haystack
    number_filtering number_format number_sequence palindrome_generation palindrome_partitioning path_star
    polynomial_equations pool_matrix power_function prime_factorization products quantum_lock ransom_note rearc
    rectangle_count rotate_matrix rotten_oranges rubiks_cube rush_hour self_reference sentence_reordering
    shortest_path simple_equations simple_geometry sokoban spell_backward string_manipulation string_splitting
    string_synthesis sudoku survo syllogism time_intervals tower_of_hanoi tsumego word_ladder word_sequence_reversal
    word_sorting zebra_puzzles
"""
LIBRARY_SCORED = frozenset(_READ.split())
"""Tasks that the library's own `score_answer` scores."""

CAPPED = frozenset(("figlet_font", "letter_jumble", "spell_backward", "word_sorting"))
"""
Of these, those whose library score is 1 for a text that goes on after the right answer, or for one that is only right
in ten letters: full credit is for the gold answer alone, anything else has at most [`CAP`].
"""

CAP = 0.9

REFUSED = {
    "codeio": "its problems are made by running programs that come with its data (`exec`)",
    "composite": "a mixture is several entries of `datasets`, each with its task",
    "propositional_logic": "a premise that is copied from the question gets full credit",
}
"""Tasks that are not offered, and why."""
