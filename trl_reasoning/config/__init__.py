"""Recipes: reading them, checking them, and preparing a run before a model is loaded."""

from .environment import accelerate_command, check_environment, find_accelerate_file
from .errors import RecipeError
from .methods import METHODS, Method
from .precision import Precision, choose_precision
from .prepare import Prepared, dry_run_text, prepare
from .recipe import Recipe, load_recipe, make_recipe
from .rewards import RewardFunction, make_rewards
from .shipped import find_recipe, recipe_folder, recipe_names


__all__ = [
    "METHODS",
    "Method",
    "Precision",
    "Prepared",
    "Recipe",
    "RecipeError",
    "RewardFunction",
    "accelerate_command",
    "check_environment",
    "choose_precision",
    "dry_run_text",
    "find_accelerate_file",
    "find_recipe",
    "load_recipe",
    "make_recipe",
    "make_rewards",
    "prepare",
    "recipe_folder",
    "recipe_names",
]
