import { defineConfig } from "drizzle-kit";
export default defineConfig({ dialect: "mysql", schema: "./schema.ts", out: "./drizzle", dbCredentials: { url: process.env.DB_URL! } });
